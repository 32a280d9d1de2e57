"""The snapshot: provenance with a hash; the sample: what training sees, and nothing else."""

import json
from datetime import timedelta
from hashlib import sha256

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dataset.data_cases import NOW, candidates, crowd
from tests.support import trajectory

from upswing.contracts import canonical
from upswing.contracts.steps import trajectory_from_row
from upswing.dataset.balance import DomainBalance
from upswing.dataset.filtering import SelectionSpec
from upswing.dataset.sample import Sample, build_sample
from upswing.dataset.select import select
from upswing.dataset.snapshot import Snapshot, build_snapshot, digest, read_snapshot
from upswing.errors import Rejected

SPEC = SelectionSpec("grpo", 40, holdout=0.3, seed=3)


def snapshot(people, spec=SPEC, *, made=NOW, **changes):
    told = {"source": "local", "requested_filter": {}, "left_out": {}, "notes": []} | changes
    return build_snapshot(select(people, spec), spec, made=made, **told)


def test_it_says_what_was_chosen_and_what_was_not():
    people = crowd(
        80,
        domain=lambda n: "coding" if n < 40 else "general",
        seen=lambda n: n >= 16,
        evaluation=lambda n: n == 79,
        model=lambda n: "v1" if n < 56 else "v2",
    )
    made = snapshot(people, left_out={"not_taken": 2}, notes=["A word."])
    assert len(made.entries) == 39
    assert sum(made.domains.values()) == sum(made.groups.values()) == 39
    assert set(made.groups.values()) == {7, 8}
    assert made.tasks == 5
    assert made.left_out == {"evaluation": 1, "not_needed": 40, "not_taken": 2}
    assert sum(made.policies.values()) == len(made.trained())
    assert made.sources == {"verified": 5}
    assert 0 < made.reused < 1
    assert made.earliest < made.latest
    assert made.notes[0] == "A word."
    assert set(made.trained()) == {(e.trajectory_id, 1) for e in made.entries if not e.held_out}


def test_it_tells_the_share_that_other_policies_made():
    people = crowd(64, model=lambda n: "v1" if n < 16 else "v2")
    made = snapshot(people, SelectionSpec("grpo", 64, policy_ages={"v2": 0, "v1": 1}))
    assert (made.policies, made.off_policy) == ({"v1": 16, "v2": 48}, 0.25)


def test_the_same_content_has_the_same_hash_whenever_it_is_made():
    people = crowd(80)
    one, other = snapshot(people), snapshot(people[::-1], made=NOW + timedelta(days=9))
    assert one.sha256 == other.sha256
    assert one.made != other.made


@pytest.mark.parametrize(
    "spec",
    [
        SelectionSpec("grpo", 40, holdout=0.3, seed=4),
        SelectionSpec("rloo", 40, holdout=0.3, seed=3),
        SelectionSpec("grpo", 32, holdout=0.3, seed=3),
        SelectionSpec("grpo", 40, holdout=0.0, seed=3),
        SelectionSpec("grpo", 40, holdout=0.3, seed=3, balance=DomainBalance(even=True)),
    ],
)
def test_another_spec_has_another_hash(spec):
    assert snapshot(crowd(80)).sha256 != snapshot(crowd(80), spec).sha256


def test_a_new_revision_of_a_reward_makes_another_data_set():
    assert snapshot(crowd(80)).sha256 != snapshot(crowd(80, revision=2)).sha256


def test_it_is_written_and_read_as_json():
    made = snapshot(crowd(80))
    assert read_snapshot(msgspec.json.encode(made)) == made
    assert digest(made) == made.sha256


def test_a_changed_snapshot_is_refused():
    raw = msgspec.json.encode(snapshot(crowd(80)))
    with pytest.raises(Rejected, match="was changed"):
        read_snapshot(raw.replace(b'"seed":3', b'"seed":4'))
    with pytest.raises(Rejected, match="no snapshot"):
        read_snapshot(raw[:-5])


ADDED = ("trained_groups", "policies", "off_policy", "sources")
"""Fields with a default: a snapshot of an earlier version has none of them."""


@pytest.mark.parametrize("known", range(len(ADDED)))
def test_a_snapshot_of_an_earlier_version_still_verifies(known):
    """It was sealed over the fields that there were, and says nothing of those that came later."""
    written = msgspec.to_builtins(snapshot(crowd(80)))
    for name in (*ADDED[known:], "sha256"):
        del written[name]
    sealed = {key: value for key, value in written.items() if key != "made"}
    raw = msgspec.json.encode(written | {"sha256": sha256(canonical(sealed)).hexdigest()})
    assert len(read_snapshot(raw).entries) == 40
    with pytest.raises(Rejected, match="was changed"):
        read_snapshot(raw.replace(b'"seed":3', b'"seed":4'))


def test_every_field_that_came_later_has_a_default():
    optional = [each.name for each in msgspec.structs.fields(Snapshot) if not each.required]
    assert optional == ["sha256", *ADDED]


@given(candidates, st.randoms())
def test_the_order_of_the_rows_does_not_show_in_the_hash(people, chance):
    again = chance.sample(people, len(people))
    assert snapshot(people).sha256 == snapshot(again).sha256


# ── samples ──────────────────────────────────────────────────────────────────────────────────────


def sample(body, **changes):
    told = {"reward": 0.9, "raw_total": 0.8, "window_id": "w", "scenario_id": "s"} | changes
    return build_sample(body, **told)


def test_a_sample_carries_what_encoding_needs():
    body = trajectory(
        metadata={
            "step_rewards": [0.25],
            "tokens": [{"turn_id": 1, "ids": [3, 4], "logprobs": [-1, 0]}],
        }
    )
    made = sample(body, domain="coding", revision=2, held_out=True)
    assert (made.task_id, made.domain, made.revision, made.held_out) == (
        "task-1",
        "coding",
        2,
        True,
    )
    assert made.turn_rewards == [0.25]
    (turn,) = made.turns
    assert turn.observation_type == "user_message"
    assert turn.action["tool_name"] == "python"
    assert (turn.token_ids, turn.logprobs, made.on_policy) == ([3, 4], [-1.0, 0.0], True)
    assert msgspec.json.decode(msgspec.json.encode(made), type=Sample) == made


def test_rewards_of_steps_come_from_the_step_table():
    steps = [
        {"stepNumber": 1, "environmentState": {"x": 1}, "reward": 0.5, "action": {"type": "buy"}},
        {"stepNumber": 2, "environmentState": {"x": 2}, "action": {"type": "sell"}},
    ]
    row = {"trajectoryId": "t", "agentId": "a", "stepsJson": json.dumps(steps)}
    assert sample(trajectory_from_row(row)).turn_rewards == [0.5, 0.0]


@pytest.mark.parametrize(
    "told", [None, [], [0.5, 0.5], ["much"], [None], [True], "1", [float("inf")]]
)
def test_rewards_that_do_not_fit_the_turns_are_none(told):
    assert sample(trajectory(metadata={"step_rewards": told})).turn_rewards is None


@pytest.mark.parametrize(
    "told",
    [
        None,
        "x",
        [1],
        [{"turn_id": 1}],
        [{"turn_id": 1, "ids": ["a"]}],
        [{"turn_id": 1, "ids": [-1]}],
        [{"turn_id": 2, "ids": [1]}],
        {"1": [1]},
    ],
)
def test_tokens_that_cannot_be_used_are_none(told):
    made = sample(trajectory(metadata={"tokens": told}))
    assert made.turns[0].token_ids is None
    assert not made.on_policy


TOKEN = "planted-4be1f0"
places = st.sampled_from(["ground_truth", "outcome", "environment", "expected", "steps", "row"])


@given(st.dictionaries(places, st.just({"answer": TOKEN}), min_size=1), st.booleans())
def test_what_nobody_named_is_in_no_sample(planted, in_task):
    body = trajectory(**{"task_context" if in_task else "metadata": planted})
    assert TOKEN in json.dumps(body)
    assert TOKEN.encode() not in msgspec.json.encode(sample(body))


def test_what_the_agent_had_in_mind_of_the_world_is_in_no_sample():
    body = trajectory()
    body["turns"][0]["observation"]["context"] = {"memory_state": {"ground_truth": TOKEN}}
    body["turns"][0]["action"]["tool_args"] = {"code": "pass"}
    assert TOKEN.encode() not in msgspec.json.encode(sample(body))
