"""What does each station of the loop say? The drawing's words, from one overview."""

from __future__ import annotations

from dataclasses import dataclass

from upswing.dashboard.answers import ApiOverview
from upswing.dashboard.core.wording import (
    count,
    noun,
    percent,
    plural,
    score,
    short_count,
    short_id,
    spoken,
)

_TONES = {"ramping": "busy", "queued": "busy", "paused": "held", "awaiting_approval": "held"}
"""Of a rollout: those that wait for a person are held."""


@dataclass(frozen=True, slots=True)
class Station:
    """One station: its number or word, and what it does."""

    value: str
    sentence: str = ""
    tone: str = ""
    """`busy`, `held`, `trouble` or nothing."""


@dataclass(frozen=True, slots=True)
class StationPlace:
    """Where a station stands in the drawing, and where it leads."""

    name: str
    title: str
    href: str


STATIONS = (
    StationPlace("agents", "Agents", "/trajectories"),
    StationPlace("collect", "Collect", "/trajectories"),
    StationPlace("reward", "Reward", "/trajectories"),
    StationPlace("trigger", "Trigger", "/jobs"),
    StationPlace("train", "Train", "/jobs"),
    StationPlace("validate", "Validate", "/models"),
    StationPlace("deploy", "Roll out", "/rollouts"),
    StationPlace("gateway", "Gateway", "/models"),
)
"""In the direction in which data goes round."""


def stations_of(seen: ApiOverview, counts: dict[str, int]) -> dict[str, Station]:
    """`counts` may be newer than those of the overview."""
    hour, day = seen.collected.last_hour, seen.collected.last_24h
    dead = counts.get("dead", 0)
    return {
        "agents": Station(
            short_count(hour),
            _arrivals(day, counts.get("trajectories", 0)),
            "busy" if hour else "",
        ),
        "collect": Station(
            short_count(counts.get("trajectories", 0)),
            "stored, redacted" + (f"; {plural(dead, 'dead letter')}" if dead else ""),
            "trouble" if seen.health.trouble else "",
        ),
        "reward": Station(
            short_count(counts.get("rewards", 0)),
            f"rewards; feedback {count(counts.get('feedback', 0))} times",
        ),
        "trigger": _trigger(seen),
        "train": _train(seen, counts),
        "validate": _validate(seen, counts),
        "deploy": _deploy(seen),
        "gateway": _gateway(seen),
    }


def _arrivals(day: int, stored: int) -> str:
    if day:
        return f"in the last hour, {short_count(day)} in a day"
    return "nothing in the last day" if stored else "no agent has joined yet"


def trigger_words(seen: ApiOverview) -> tuple[bool, str]:
    """Whether a job may begin, and why or why not: where there is enough to learn from, what the trigger decided last."""
    if seen.readiness is None:
        return False, ""
    newest = next((each for each in seen.decisions if each.stage == "trigger"), None)
    if not seen.readiness.ready or newest is None or newest.job_id:
        return seen.readiness.ready, seen.readiness.reason
    return False, f"{newest.sentence} There is enough to learn from."


def _trigger(seen: ApiOverview) -> Station:
    if seen.readiness is None:
        return Station("–", "")
    ready, sentence = trigger_words(seen)
    return Station("ready" if ready else "waiting", sentence, "busy" if ready else "")


def _train(seen: ApiOverview, counts: dict[str, int]) -> Station:
    job = seen.job
    if job is not None and job.status in {"running", "queued"}:
        doing = percent(job.percent) if job.status == "running" else "queued"
        return Station(doing, f"{job.algorithm} on {job.base_model}", "busy")
    jobs = counts.get("jobs", 0)
    told = f"{noun(jobs, 'job')} so far" if jobs else "nothing to train on yet"
    return Station(count(jobs), told)


def _validate(seen: ApiOverview, counts: dict[str, int]) -> Station:
    newest = next((each for each in seen.decisions if each.stage == "validate"), None)
    models = counts.get("models", 0)
    told = newest.sentence if newest else f"{noun(models, 'model')} trained"
    return Station(count(models), told)


def _deploy(seen: ApiOverview) -> Station:
    if seen.rollouts:
        rollout = seen.rollouts[0]
        tone = _TONES.get(rollout.state, "")
        words = f"{rollout.model_id}: {spoken(rollout.state)}"
        return Station(percent(rollout.traffic_percentage), words, tone)
    newest = next((each for each in seen.decisions if each.stage == "deploy"), None)
    return Station("none", newest.sentence if newest else "no rollout yet")


def _gateway(seen: ApiOverview) -> Station:
    if seen.traffic is None or not seen.traffic.baseline:
        return Station("–", "no model is served from here")
    shares = sorted(seen.traffic.traffic.items(), key=lambda item: -item[1])
    rewards = (each.reward for each in seen.models if each.model_id == seen.traffic.baseline)
    mean = next((reward.mean for reward in rewards if reward), None)
    said = ", ".join(f"{short_id(name)} {percent(share)}" for name, share in shares if share)
    return Station(
        seen.traffic.baseline, f"{said}; reward {score(mean)}" if mean is not None else said
    )
