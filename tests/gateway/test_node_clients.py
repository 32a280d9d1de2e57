"""Do JavaScript's clients work through the gateway at their defaults? With the machine's node; skipped without.

The packages are installed once into a folder for temporary files, and found there by later runs.
"""

import json
import os
import shutil
import subprocess
import tempfile
from hashlib import sha256
from pathlib import Path

import pytest

from tests.gateway.served import KEY, check

pytestmark = pytest.mark.live
PACKAGES = (
    "openai@6.49.0",
    "ai@6.0.326",
    "@ai-sdk/openai@3.0.139",
    "@anthropic-ai/sdk@1.9.0",
    "zod@4.6.7",
)
SCRIPT = Path(__file__).with_name("clients.mjs")
INSTALL = (
    "install",
    "--no-save",
    "--no-package-lock",
    "--no-audit",
    "--no-fund",
    "--loglevel=error",
)


@pytest.fixture(scope="module")
def installed():
    """A folder with the packages."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("there is no node on this machine")
    name = sha256("\n".join(PACKAGES).encode()).hexdigest()[:12]
    folder = Path(tempfile.gettempdir()) / f"upswing-npm-{os.getuid()}-{name}"
    if not (folder / "whole").exists():
        fresh = Path(tempfile.mkdtemp(prefix="upswing-npm-"))
        (fresh / "package.json").write_text('{"private": true}')
        command = [npm, *INSTALL, *PACKAGES]
        done = subprocess.run(
            command, cwd=fresh, check=False, capture_output=True, text=True, timeout=600
        )
        if done.returncode:
            shutil.rmtree(fresh)
            pytest.skip(f"npm cannot install the clients: {done.stderr.strip()[:200]}")
        (fresh / "whole").touch()
        try:
            fresh.rename(folder)
        except OSError:  # somebody else was quicker
            shutil.rmtree(fresh)
    return node, folder


def run(installed, served, client):
    node, folder = installed
    command = [node, str(SCRIPT), client, served.url, KEY]
    done = subprocess.run(
        command, cwd=folder, check=False, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.mark.long
@pytest.mark.parametrize("client", ["openai", "openai-stream", "anthropic", "anthropic-stream"])
def test_a_javascript_client_uses_its_tool(installed, served, client):
    told = run(installed, served, client)
    assert told["usage"] in {5, 25}
    check(served, told["answer"])


@pytest.mark.parametrize("client", ["ai-sdk", "ai-sdk-stream"])
def test_the_ai_sdk_refers_to_an_answer_by_its_id_and_is_understood(installed, served, client):
    told = run(installed, served, client)
    assert "42" in told["again"]
    last = served.backend.requests[-1]["body"]["messages"]
    assert last[-2] == {"role": "assistant", "content": told["answer"]}
    check(served, told["answer"])
