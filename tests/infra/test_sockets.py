"""Does the sentence blame what is to blame, the port or the address, and name the option that mends it?"""

import socket

import pytest

from upswing.errors import Misuse
from upswing.infra.nats.server import EmbeddedServer
from upswing.infra.sockets import bind_port


@pytest.mark.parametrize("option", ["--port", "--gateway-port"])
def test_a_port_that_is_taken_is_blamed_with_its_option(option):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(Misuse, match=f"Port {port} on 127.0.0.1 .* {option}"):
            bind_port("127.0.0.1", port, option)


@pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid", "2001:db8::1"])
@pytest.mark.parametrize("port", [0, 8100])
def test_an_address_that_is_not_ours_is_blamed_and_not_the_port(host, port):
    with pytest.raises(Misuse, match=r"is no address of this machine .* --host"):
        bind_port(host, port)


async def test_a_bus_port_that_was_asked_for_and_is_taken_is_refused(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(Misuse, match=f"Port {port} .* --nats-port"):
            await EmbeddedServer(tmp_path, {}, port).start()
