"""litellm's proxy, as its documentation starts it: one worker, a master key, one model.

    python litellm_proxy.py STUB KEY

A line on stdin is answered, once the proxy is ready, with its address and versions, as JSON.
"""

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from importlib.metadata import version
from pathlib import Path

CONFIG = """
model_list:
  - model_name: agent
    litellm_params: {{model: openai/stub, api_base: "{stub}", api_key: "none"}}
general_settings: {{master_key: "{key}"}}
litellm_settings: {{telemetry: false}}
"""
PATIENCE_S = 120.0


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(folder, stub, key, port):
    config = folder / "config.yaml"
    config.write_text(CONFIG.format(stub=stub, key=key))
    command = [str(Path(sys.executable).with_name("litellm")), "--config", str(config)]
    libc = ctypes.CDLL(None)
    return subprocess.Popen(
        [*command, "--host", "127.0.0.1", "--port", str(port)],
        env={**os.environ, "LITELLM_LOG": "ERROR", "LITELLM_MODE": "PRODUCTION", "NO_PROXY": "*"},
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        preexec_fn=lambda: libc.prctl(1, signal.SIGKILL),  # noqa: PLW1509 - it ends with us; no threads here
    )


def wait(process, url):
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/health/liveliness", timeout=2):
                return
        except (OSError, urllib.error.URLError):
            time.sleep(0.2)
    raise SystemExit("litellm did not become ready")


def main(stub, key):
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory() as name:
        process = start(Path(name), stub, key, port)
        wait(process, url)
        told = {"url": f"{url}/v1", "versions": {"litellm": version("litellm")}}
        for _ in sys.stdin:
            print(json.dumps(told), flush=True)
        process.kill()


if __name__ == "__main__":
    main(*sys.argv[1:])
