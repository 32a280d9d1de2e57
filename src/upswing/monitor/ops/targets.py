"""Where does a loop listen, where do those listen who watch it, and when do they call somebody?"""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from upswing.config import AlertsConfig
from upswing.errors import Misuse
from upswing.monitor.core.alert_rules import AlertLimits

LOOP, GATEWAY, MODEL_SERVER = "upswing", "upswing-gateway", "upswing-model-server"
"""Jobs of Prometheus: one for each kind of process that has `/metrics`."""


@dataclass(frozen=True, slots=True)
class OpsTargets:
    """Addresses, as URLs without a path."""

    loop: str = "http://127.0.0.1:8100"
    gateways: tuple[str, ...] = ("http://127.0.0.1:3000",)
    model_servers: tuple[str, ...] = ()
    """Those of ours; one of the user's own has metrics of its own, or none."""
    alertmanager: str = "http://127.0.0.1:9093"
    prometheus: str = "http://127.0.0.1:9090"
    loki: str = "http://127.0.0.1:3100"
    webhook: str | None = None
    """Where Alertmanager sends alerts; None: it shows them, and sends nothing."""
    logs: tuple[str, ...] = ("/var/log/upswing/*.log",)
    """Our logs, as JSON lines: the loop's with its gateway's, and the model server's."""


@dataclass(frozen=True, slots=True)
class OpsLimits:
    """From when on somebody is called, and how often is looked; times in seconds.

    The defaults are those of `[alerts]`; tests make them short.
    """

    scrape: int = 15
    """Between two looks at a process."""
    evaluate: int = 15
    """Between two looks at the rules."""
    reward_window: int = 300
    """Of which a mean reward is taken."""
    errors_window: int = 900
    """In which collection errors are counted."""
    error_ratio: float = 0.10
    """Of the messages that agents send: refused or not stored. More is an alert …"""
    least_messages: int = AlertLimits().least_messages
    """… where so many came: of fewer, a single bad one would be a tenth."""
    event_window: int = 3600
    """For which a single event, such as a rollback, stays an alert."""
    bus_away: int = 300
    """Without the bus before somebody is called: senders and gateways keep what they have."""
    server_away: int = 60
    """Without a process before somebody is called: a restart takes less."""
    settled: int = 60
    """For which a condition that is read every few seconds must hold."""
    group_wait: int = 30
    """Until alerts that belong together are sent."""


def limits_of(config: AlertsConfig) -> OpsLimits:
    """As the loop's own alerts are configured.

    >>> limits_of(AlertsConfig()) == OpsLimits()
    True
    """
    return OpsLimits(
        errors_window=_whole(config.refused_minutes),
        error_ratio=config.refused_share,
        bus_away=_whole(config.bus_minutes),
        server_away=_whole(config.server_minutes),
    )


def _whole(minutes: float) -> int:
    """Prometheus takes whole seconds, and no window of none."""
    return max(1, round(60 * minutes))


@dataclass(frozen=True, slots=True)
class ScrapeAddress:
    """A URL as Prometheus wants it."""

    scheme: str
    netloc: str


@dataclass(frozen=True, slots=True)
class OpsSetup:
    """What all files are generated from."""

    targets: OpsTargets = field(default_factory=OpsTargets)
    limits: OpsLimits = field(default_factory=OpsLimits)


def scrape_address(url: str) -> ScrapeAddress:
    """Scheme and host with its port; a loop that listens everywhere is asked on the loopback.

    >>> scrape_address("http://0.0.0.0:8100/v1")
    ScrapeAddress(scheme='http', netloc='127.0.0.1:8100')
    >>> scrape_address("https://gateway.example/")
    ScrapeAddress(scheme='https', netloc='gateway.example:443')
    >>> scrape_address("localhost:8100")
    Traceback (most recent call last):
    upswing.errors.Misuse: localhost:8100 is no address such as http://127.0.0.1:8100.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        raise _no_address(url) from None
    if not host or port is None:
        raise _no_address(url)
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - nobody listens here
    return ScrapeAddress(parts.scheme, f"[{host}]:{port}" if ":" in host else f"{host}:{port}")


def _no_address(url: str) -> Misuse:
    return Misuse(f"{url} is no address such as http://127.0.0.1:8100.")


def duration(seconds: int) -> str:
    """As Prometheus writes it.

    >>> [duration(each) for each in (15, 90, 300, 7200, 86400)]
    ['15s', '90s', '5m', '2h', '1d']
    """
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds % size == 0 and seconds:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
