"""Episodes of a gateway, stored and scored, for the tests that read them."""

from datetime import UTC, datetime

from tests.support import raw, trajectory

from upswing.collect.core.admit import AdmissionLimits, admit
from upswing.contracts import Reward, from_builtins
from upswing.contracts.examples import EXAMPLES
from upswing.infra.sql.rewards import Rewards
from upswing.records import NewReward, ScoredFacts
from upswing.redact import Redactor

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
REDACTOR = Redactor()


async def scored(
    store, *, model="m-1", total=0.5, gateway=True, episode=None, door="gateway", **metadata
):
    """An episode of the gateway, stored and scored; its id."""
    about = {"model": model, "episode_id": episode, **metadata}
    if gateway:
        about["gateway"] = {
            "rollout": "r-1",
            "candidate": model == "m-1",
            "named": False,
            **(gateway if isinstance(gateway, dict) else {}),
        }
    admitted = admit(raw(trajectory(metadata=about)), REDACTOR, AdmissionLimits()).admitted
    await store.take(admitted, door=door, now=NOW, stream_seq=None, announce=False)
    stored = await store.trajectory(admitted.trajectory_id)
    await Rewards(store.database).publish(
        [reward_of(stored, model, total)], cursor=stored.seq, now=NOW
    )
    return admitted.trajectory_id


def reward_of(stored, model, total, revision=1):
    tree = EXAMPLES[Reward] | {
        "trajectory_id": stored.admitted.trajectory_id,
        "metadata": EXAMPLES[Reward]["metadata"]
        | {
            "revision": revision,
            "raw_total": total,
            "model": model,
            "window_id": "w",
            "scenario_id": "s",
        },
    }
    return NewReward(
        trajectory_seq=stored.seq,
        reward=from_builtins(Reward, tree),
        raw={},
        facts=ScoredFacts("coding", 0.3, 1, None, None),
        episode_id=stored.admitted.episode_id,
        agent_id="a",
        principal="a",
        pnl=None,
        balance=None,
        infra_error=stored.admitted.infra_error,
    )
