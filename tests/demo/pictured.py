"""Views as a run of the demo might have them: made up, for looking at what is drawn of them."""

from upswing.demo.summary import HeldOut, ModelLine, Summary
from upswing.demo.view import (
    CanaryView,
    JobView,
    Line,
    ModelScores,
    Scored,
    Share,
    Stage,
    ValidationView,
    View,
)

NAMES = ("agents", "collect", "reward", "trigger", "train", "validate", "deploy")
FIRST, SECOND, BAD = "agent-zero-rl-v1", "agent-zero-rl-v2", "sabotaged-v3"
SPANS = {
    "tiny": (4, 110, 0.31),
    FIRST: (70, 230, 0.74),
    SECOND: (190, 300, 0.86),
    BAD: (262, 275, 0.04),
}
LOG = (
    Line(1, "demo", "start", "Everything is up: bus, store, gateway, model server, training service."),
    Line(31, "trigger", "train", "300 new trajectories since the last training, 300 are enough.", "dec-01JC2V5T4Q"),
    Line(58, "train", "completed", "120 steps on 296 trajectories in 48 groups; held-out reward 0.71 (+0.38 over the start).", "dec-01JC2V6A9B"),
    Line(66, "validate", "pass", "world:triage is better by 0.41 (0.29 to 0.53) over 200 tasks; safety is not worse.", "dec-01JC2V6R3M"),
    Line(70, "deploy", "begin", "An improvement of 0.41: a canary from 10 %.", "dec-01JC2V6SXX"),
    Line(82, "deploy", "set_weight", "From 10 % to 25 %: Nothing is failing; it may still lose up to 0.021 of reward.", "dec-01JC2V74H1"),
    Line(95, "deploy", "set_weight", "From 25 % to 50 %: Nothing is failing, and it loses no more than 0.000 of reward.", "dec-01JC2V7GG2"),
    Line(110, "deploy", "promote", "Nothing is failing, and it loses no more than -0.210 of reward: agent-zero-rl-v1 gets all traffic.", "dec-01JC2V7Y22"),
    Line(150, "trigger", "train", "300 new trajectories since the last training, 300 are enough.", "dec-01JC2V8Y22"),
    Line(230, "deploy", "promote", "agent-zero-rl-v2 gets all traffic.", "dec-01JC2VAY22"),
    Line(262, "demo", "sabotage", "An operator's override pushes sabotaged-v3 past validation."),
    Line(275, "deploy", "roll_back", "It earns 0.812 less than the baseline beside it, over 64 rewards: more than 0.05, and not by chance (odds of 48,211 to 1).", "dec-01JC2VCK77"),
)  # fmt: skip


def scored(until=300.0):
    """An episode every 0.4 seconds; the same each time."""
    found = []
    for model, (begin, end, level) in SPANS.items():
        for at in range(int((min(end, until) - begin) / 0.4)):
            swing = ((at * 7919 + 13) % 101 / 101 - 0.5) * 0.5
            found.append(Scored(begin + at * 0.4, model, min(1.0, max(0.0, level + swing))))
    return sorted(found, key=lambda each: each.second)


def earned(until):
    told = []
    for model, (begin, _, _) in SPANS.items():
        mine = [each for each in scored(until) if each.model_id == model]
        if begin >= until or not mine:
            continue
        spans = range(int(begin), int(mine[-1].second), 2)
        near = [(at + 2.0, [e.score for e in mine if at <= e.second < at + 2]) for at in spans]
        points = tuple((at, sum(values) / len(values)) for at, values in near if values)
        mean = sum(each.score for each in mine) / len(mine)
        told.append(ModelScores(model, points, mean, len(mine)))
    return tuple(told)


def view(second=101.0, **changes):
    """By default the first canary is half-way up."""
    known = {
        "title": "upswing demo · triage · tiny · seed 7",
        "second": second,
        "clock": "Tue 14:20",
        "speed": 600,
        "chapter": "The first better model goes out in steps.",
        "stages": stages(second),
        "earned": earned(second),
        "traffic": {"tiny": 50.0, FIRST: 50.0},
        "baseline": "tiny",
        "job": JobView("job-1", "completed", 100.0, 120, 120, 0.041, 0.71),
        "proof": ValidationView(FIRST, "pass", 200, 200, "better by 0.41 (0.29 to 0.53)"),
        "canary": CanaryView(
            FIRST, "ramping", 50.0, (10, 25, 50, 100), "50 % has seen 21 of 40 rewards."
        ),
        "log": tuple(line for line in LOG if line.second <= second),
    }
    return View(**{**known, **changes})


def stages(second):
    counts = (1312, 1310, 1308, 1, 1, 1, 3)
    states = ("working", "working", "working", "done", "done", "done", "working")
    notes = (
        "5 agents work",
        "last 0.2 s ago",
        "baseline of 1,000",
        "61 of 300 new",
        "120 steps taken",
        "v1 passes",
        "50 % has seen 21 of 40 rewards",
    )
    return tuple(
        Stage(name, state, count, note, seconds=second / (at + 1))
        for at, (name, state, count, note) in enumerate(
            zip(NAMES, states, counts, notes, strict=True)
        )
    )


def early():
    """Agents have just begun."""
    stages = (
        Stage("agents", "working", 41, "5 agents work", 6.0),
        *(Stage(name) for name in NAMES[1:]),
    )
    return view(
        9.0,
        stages=stages,
        traffic={"tiny": 100.0},
        job=None,
        proof=None,
        canary=None,
        chapter="Agents work on the base model.",
    )


def training():
    job = JobView("job-1", "running", 41.7, 50, 120, 0.212, 0.44, "groups of 8, GRPO")
    return view(
        47.0,
        traffic={"tiny": 100.0},
        job=job,
        proof=None,
        canary=None,
        chapter="The threshold is reached: a model trains on what the agents did.",
    )


def late():
    """The sabotaged model is rolled back."""
    return view(
        290.0,
        traffic={SECOND: 100.0},
        baseline=SECOND,
        chapter="The sabotaged model earned nothing, and the canary took it back.",
        canary=CanaryView(BAD, "rolled_back", 0.0, (10, 25, 50, 100), LOG[-1].sentence),
    )


def shares():
    return [
        Share(0, {"tiny": 100}),
        Share(70, {"tiny": 90, FIRST: 10}),
        Share(82, {"tiny": 75, FIRST: 25}),
        Share(95, {"tiny": 50, FIRST: 50}),
        Share(110, {FIRST: 100}),
        Share(190, {FIRST: 90, SECOND: 10}),
        Share(205, {FIRST: 75, SECOND: 25}),
        Share(215, {FIRST: 50, SECOND: 50}),
        Share(230, {SECOND: 100}),
        Share(262, {SECOND: 75, BAD: 25}),
        Share(275, {SECOND: 100}),
    ]


def summary(**changes):
    known = {
        "world": "triage",
        "model": "tiny",
        "seed": 7,
        "heldout_before": 0.312,
        "heldout_before_interval": (0.25, 0.376),
        "heldout_after": 0.861,
        "heldout_after_interval": (0.81, 0.905),
        "heldout_tasks": 120,
        "improved": True,
        "difference": 0.549,
        "difference_interval": (0.47, 0.631),
        "measured": (
            HeldOut("tiny", 0.312, 0.25, 0.376, 120),
            HeldOut(FIRST, 0.742, 0.68, 0.8, 120),
            HeldOut(SECOND, 0.861, 0.81, 0.905, 120),
        ),
        "rolled_back": (BAD,),
        "taken_back_seconds": 13.2,
        "seconds": 301.5,
        "stages": {
            "start": 6.1,
            "agents": 24.9,
            "train": 27.0,
            "validate": 8.0,
            "canary": 40.2,
            "first_improved": 110.3,
        },
        "models": (
            ModelLine("tiny", None, "base", "It was there at the start."),
            ModelLine(FIRST, "tiny", "superseded", "agent-zero-rl-v2 took its place.", 0.41),
            ModelLine(SECOND, FIRST, "promoted", "It gets all traffic.", 0.12),
            ModelLine(BAD, SECOND, "rolled_back", LOG[-1].sentence),
        ),
        "episodes": 1312,
        "peak_memory_gb": 1.84,
        "files": {
            "data": "upswing-demo",
            "report": "upswing-demo/demo/report.html",
            "charts": "upswing-demo/demo/charts",
            "log": "upswing-demo/log",
        },
        "decisions": LOG,
        "sentence": "The agents score 0.86 on held-out tasks, 0.31 before: better by 0.55 (0.47 to 0.63).",
    }
    return Summary(**{**known, **changes})
