"""The page for newcomers, run as it is written: an agent of one's own, to its second promoted version."""

import asyncio
import contextlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from tests.support import UPSWING, cli, until

pytestmark = [pytest.mark.learn, pytest.mark.live, pytest.mark.slow]
PAGE = Path(__file__).parents[2] / "docs" / "your-own-agent.md"
ROUNDS, MINUTES = 200, 25


def block(name):
    (code,) = re.findall(rf"<!-- {name} -->\n```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return code


def settings():
    (line,) = re.findall(r"\$ (RL_BASE_MODEL=.*) upswing up", PAGE.read_text())
    return dict(pair.split("=") for pair in line.split())


def promoted(data):
    told = json.loads(cli("models", "--json", data=data).stdout)
    return [each["model_id"] for each in told if each["deployed"]]


async def answers(gateway):
    """Whether a model answers behind the gateway."""
    key = {"authorization": f"Bearer {gateway['OPENAI_API_KEY']}"}
    body = {"model": "upswing", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 1}
    async with httpx.AsyncClient(headers=key, timeout=30) as client:
        with contextlib.suppress(httpx.TransportError):
            asked = await client.post(f"{gateway['OPENAI_BASE_URL']}/chat/completions", json=body)
            return asked.status_code == 200
    return False


async def test_an_agent_of_ones_own_gets_its_second_promoted_version(tmp_path, bases):
    data, agent = tmp_path / "data", tmp_path / "agent.py"
    data.mkdir(mode=0o700)
    (data / "bases").symlink_to(bases)
    agent.write_text(block("agent"))
    with (tmp_path / "loop.txt").open("wb") as words:
        loop = subprocess.Popen(
            [
                UPSWING,
                "up",
                "--data",
                str(data),
                "--port",
                "0",
                "--gateway-port",
                "0",
                "--no-dashboard",
            ],
            stdin=subprocess.DEVNULL,
            stdout=words,
            stderr=words,
            env=os.environ | settings(),
        )
    try:
        await until((data / "running.json").exists, 180, "the loop did not start")
        info = json.loads(cli("info", "--json", "--show-secrets", data=data).stdout)
        gateway = {
            "OPENAI_BASE_URL": f"{info['gateway_url']}/v1",
            "OPENAI_API_KEY": info["gateway_key"],
        }
        await until(lambda: answers(gateway), 120, "the gateway does not answer")
        shares = []
        async with asyncio.timeout(MINUTES * 60):
            for number in range(ROUNDS):
                ran = await asyncio.to_thread(
                    subprocess.run,
                    [sys.executable, str(agent), str(number)],
                    env=os.environ | gateway,
                    capture_output=True,
                    check=True,
                )
                shares.append(float(ran.stdout))
                if len(promoted(data)) >= 2:
                    break
        assert len(promoted(data)) >= 2, cli("learn-report", data=data).stdout.decode()
        print(f"share of right answers: {shares[0]:.2f} → {shares[-1]:.2f} in {len(shares)} rounds")
        assert max(shares[-3:]) > shares[0] + 0.25, shares
    finally:
        loop.terminate()
        loop.wait(300)
