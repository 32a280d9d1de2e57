"""The page's process: its port, its options, and what a loop without it says."""

import argparse
import socket
import subprocess

import pytest

from tests.support import UPSWING, Client, alive, cli, until
from upswing.cli.loop import check_ports, choose_dashboard_port
from upswing.dashboard.main import DEFAULT_PORT
from upswing.dashboard.process import DashboardSupervisor
from upswing.errors import Misuse


def options(**changes):
    plain = {"host": "127.0.0.1", "port": 8100, "gateway_port": 3000, "dashboard_port": None}
    return argparse.Namespace(**plain | {"no_gateway": True, "no_dashboard": False} | changes)


def test_without_the_page_there_is_no_port():
    assert choose_dashboard_port(options(no_dashboard=True)) is None


def test_a_named_port_is_taken_as_it_is():
    assert choose_dashboard_port(options(dashboard_port=8142)) == 8142


def test_a_loop_on_any_port_has_its_page_on_any():
    assert choose_dashboard_port(options(port=0)) == 0


def test_a_usual_port_that_is_taken_keeps_no_loop_from_starting():
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            other.bind(("127.0.0.1", DEFAULT_PORT))
            other.listen()
        except OSError:
            pass  # then somebody else has it, which is the same
        assert choose_dashboard_port(options()) == 0


def test_two_ports_that_are_the_same_are_refused_by_name():
    with pytest.raises(Misuse, match="--port and --dashboard-port are both 18177"):
        check_ports(options(port=18177, dashboard_port=18177))


@pytest.mark.live
async def test_the_page_is_started_anew_when_it_dies_and_ends_with_its_supervisor(tmp_path):
    page = DashboardSupervisor(tmp_path, "http://127.0.0.1:9", "127.0.0.1", 0)
    url = page.start()
    try:

        async def healthy():
            async with Client(url) as client:
                return (await client("GET", "/health"))[0] == 200

        await until(healthy, 120)
        first = page.pid
        subprocess.run(["kill", "-9", str(first)], check=True)
        await until(lambda: page.pid != first and alive(page.pid), 120)
        await until(healthy, 120)
        second = page.pid
    finally:
        await page.stop()
    assert not alive(second)


@pytest.mark.live
def test_a_page_that_knows_no_loop_says_what_to_give(tmp_path):
    done = cli("dashboard", "--port", "0", data=tmp_path / "nothing", check=False)
    assert done.returncode == 1
    assert b"--loop-url" in done.stderr


@pytest.mark.live
@pytest.mark.parametrize("address", ["localhost:8100", "ftp://x", "http://"])
def test_an_address_that_is_none_is_refused(tmp_path, address):
    command = [UPSWING, "dashboard", "--port", "0", "--loop-url", address]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert "is no address" in done.stderr
