"""The storms: which tests shake the whole thing, by what they throw at it.

`make storm` runs them at full size; the default run has a cut of each that is not slow. After a run each storm is
one line: how many trials there were, how many held, how many did not.
"""

STORMS = {
    "kills of the loop, the bus and everything": ("live/test_killing.py", "live/test_back_after_a_kill.py"),
    "frozen children": ("tests/test_pulse.py", "serve/test_adopting.py"),
    "kills of gateways and trainers": ("live/test_gateway_process.py", "live/test_training_failures.py"),
    "corrupted files": ("store/test_damage.py", "live/test_junk.py", "live/test_repair.py"),
    "redelivery": ("live/test_once.py",),
    "poison": ("tests/poison/", "live/test_bad_input.py", "collect/test_collector.py"),
    "planted secrets": ("live/test_secrets.py",),
    "controller lives": ("deploy/test_controller_fuzz.py", "deploy/test_controller_crashes.py"),
    "controller deaths at each step": ("live/test_controller_killing.py",),
    "canaries under real traffic": ("deploy/test_canary_traffic.py", "deploy/test_canary_figures.py"),
    "forged evidence and poisoned judges": ("live/test_forged_evidence.py", "groups/test_judge_injection.py"),
    "bad checkpoints": ("train/test_checkpoints.py", "train/test_refusals.py"),
    "access": ("live/test_roles.py", "http/test_access.py", "live/test_own_keys.py"),
    "clocks that are set": ("live/test_clock_set.py",),
}  # fmt: skip


def storm_of(path):
    """The storm that a test file belongs to, if any."""
    return next(
        (name for name, parts in STORMS.items() if any(part in path for part in parts)), None
    )


def lines(reports):
    """One line for each storm that these reports tell of."""
    told = {}
    for report in reports:
        name = dict(getattr(report, "user_properties", ())).get("storm")
        if name is not None and (report.when == "call" or report.failed):
            told.setdefault(name, []).append(report)
    for name, mine in told.items():
        lost = sum(each.failed for each in mine)
        yield f"{name}: {len(mine)} tried, {len(mine) - lost} held, {lost} lost"
