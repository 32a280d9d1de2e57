"""Do the requests of docs/recording.md work as they stand, typed into a shell?"""

import asyncio
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed"),
]
PAGE = Path(__file__).parents[2] / "docs" / "recording.md"
COMMANDS = re.findall(r"```sh\n(curl .*?)```", PAGE.read_text(), re.DOTALL)


async def test_the_pages_curl_commands_are_taken(start):
    process = await asyncio.to_thread(start)
    environment = {
        "AGENTGYM_RL_URL": process.info["http_url"],
        "AGENTGYM_RL_API_KEY": process.info["key"],
        "PATH": "/usr/bin:/bin",
    }
    assert len(COMMANDS) == 2
    for command in COMMANDS:
        ran = await asyncio.to_thread(
            subprocess.run,
            ["/bin/sh", "-c", command],
            env=environment,
            capture_output=True,
            check=True,
            timeout=60,
        )
        assert json.loads(ran.stdout)["result"] == "stored", ran.stdout
