"""The storms: which tests shake the whole thing, by what they throw at it.

`make storm` runs them at full size, `make storm STORM="power cuts"` one of them; the default run has a cut of each that
is not slow. After a run each storm is one line: how many trials there were, how many held, how many did not. A test is
one trial, unless it counts its own with the fixture `trials`: kills, cuts, flips, secrets. A test at full size that
takes longer than `MINUTES` is lost.
"""

import contextlib
import signal

from tests.support import sized  # noqa: F401 - a storm has two sizes

STORMS = {
    "kills of the loop, the bus and everything": (
        "live/test_killing.py",
        "live/test_back_after_a_kill.py",
    ),
    "kills of every process in bad weather": ("storms/test_kills.py", "storms/test_weather.py"),
    "power cuts": ("storms/test_power_cuts.py",),
    "frozen children": ("infra/test_heartbeat.py", "serve/test_adoption.py"),
    "kills of gateways and trainers": (
        "live/test_gateway_process.py",
        "live/test_training_failures.py",
    ),
    "corrupted files": ("sql/test_damage.py", "live/test_junk.py", "live/test_repair.py"),
    "redelivery": ("live/test_once.py",),
    "poison": (
        "tests/poison/",
        "storms/test_poison.py",
        "storms/test_gateway_poison.py",
        "live/test_bad_input.py",
        "collect/test_collector.py",
    ),
    "planted secrets": ("live/test_secrets.py", "storms/test_secrets.py"),
    "controller lives": ("deploy/test_controller_fuzz.py", "deploy/test_controller_crashes.py"),
    "controller deaths at each step": ("live/test_controller_killing.py",),
    "canaries under real traffic": (
        "deploy/test_canary_traffic.py",
        "deploy/test_canary_figures.py",
        "deploy/test_missing_episodes.py",
    ),
    "forged evidence and poisoned judges": (
        "live/test_forged_evidence.py",
        "groups/test_judge_injection.py",
    ),
    "bad checkpoints": (
        "train/test_checkpoints.py",
        "train/test_refusals.py",
        "deploy/test_serving_models.py",
    ),
    "access": (
        "live/test_roles.py",
        "api/test_access.py",
        "api/test_access_matrix.py",
        "live/test_own_keys.py",
        "gateway/test_tenants.py",
        "dashboard/test_gate.py",
        "mcp/test_mcp_server.py",
    ),
    "crowds at the doors": (
        "http1/test_admission.py",
        "http1/test_standard.py",
        "http1/test_crowded_ports.py",
        "http1/test_ending.py",
    ),
    "clocks that are set": ("live/test_clock_set.py",),
}


MINUTES = {"kills of every process in bad weather": 180}
"""Of one test at full size, on a busy machine; 45 for the others."""


@contextlib.contextmanager
def bounded(name):
    """A storm that hangs is over when its time is."""

    def over(*_):
        raise TimeoutError(f"{name}: its time is over")

    before = signal.signal(signal.SIGALRM, over)
    try:
        signal.setitimer(signal.ITIMER_REAL, 60 * MINUTES.get(name, 45))
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def storm_of(path):
    """The storm that a test file belongs to, if any."""
    return next(
        (name for name, parts in STORMS.items() if any(part in path for part in parts)), None
    )


class Trials:
    """What one test has tried, and what of it did not hold."""

    def __init__(self, properties):
        self._properties = properties
        """Of the test; its report takes them along."""
        self.tried, self.lost = 0, 0

    def add(self, tried=1, *, lost=0):
        self.tried += tried
        self.lost += lost
        others = [each for each in self._properties if each[0] not in {"tried", "lost"}]
        self._properties[:] = [*others, ("tried", self.tried), ("lost", self.lost)]


def lines(reports):
    """One line for each storm that these reports tell of; tests that were left out are among them, and tell nothing."""
    told = {}
    for report in reports:
        found = dict(getattr(report, "user_properties", ())) if hasattr(report, "when") else {}
        name = found.get("storm")
        if name is not None and not report.skipped and (report.when == "call" or report.failed):
            counts = told.setdefault(name, [0, 0])
            counts[0] += max(found.get("tried", 1), 1)
            counts[1] += max(found.get("lost", 0), int(report.failed))
    for name, (tried, lost) in told.items():
        yield f"{name}: {tried:,} tried, {tried - lost:,} held, {lost:,} lost"
