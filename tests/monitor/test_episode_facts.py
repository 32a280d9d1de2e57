"""A stored trajectory as facts: what it failed by, what went wrong, and what it was like."""

from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import raw, small
from upswing.app.analysis import is_refusal
from upswing.monitor.core.episode_facts import (
    EpisodeReading,
    StoredEpisode,
    facts_of,
    low_reward_limit,
    read_episode,
)

AT = datetime(2026, 1, 5, 14, 30, tzinfo=UTC)


def episode(tree=None, **changes):
    fields = {
        "trajectory_id": "t",
        "model": "new",
        "agent_id": "a",
        "user_id": "u",
        "domain": "coding",
        "started": AT,
        "infra_error": False,
        "raw_total": 0.6,
        "feedback": None,
        "body": raw(tree or small()),
    }
    return StoredEpisode(**fields | changes)


def gateway(**about):
    return small(gateway={"rollout": "r", "named": False, **about})


def error(kind="out_of_memory", model="new"):
    return {"model": model, "kind": kind, "prompt_bytes": 9000, "waited_ms": 5.0}


def fact(made, label="any", limit=0.5):
    (found,) = facts_of([(made, read_episode(made))], "new", label, limit, is_refusal)
    return found


def test_a_request_that_its_own_model_did_not_answer_is_a_failure_of_that_kind():
    found = fact(episode(gateway(errors=[error()])), "error")
    assert (found.failed, found.kind) == (True, "out_of_memory")
    others = fact(episode(gateway(errors=[error(model="base")])), "error")
    assert (others.failed, others.kind) == (False, "")
    older = fact(episode(gateway(failures=2)), "error")
    assert (older.failed, older.kind) == (True, "unknown"), "recorded before kinds were"


def test_little_reward_is_a_failure_beside_what_the_baseline_earns():
    limit = low_reward_limit([episode(raw_total=n / 10, model="base") for n in range(1, 9)])
    assert limit == 0.3
    assert fact(episode(raw_total=0.2), "low_reward", limit).failed
    assert not fact(episode(raw_total=0.3), "low_reward", limit).failed
    assert low_reward_limit([]) is None
    assert not fact(episode(raw_total=0.0), "low_reward", None).failed


def test_what_the_infrastructure_spoiled_has_no_reward_to_compare():
    spoiled = episode(infra_error=True, raw_total=0.0)
    facts = facts_of([(spoiled, read_episode(spoiled))], "new", "low_reward", 0.5, is_refusal)
    assert list(facts) == []
    assert not fact(spoiled, "any").failed


def test_a_users_bad_word_is_a_failure():
    assert fact(episode(feedback=0.0), "complaint").failed
    assert not fact(episode(feedback=0.9), "complaint").failed
    assert not fact(episode(feedback=None), "complaint").failed


def answered(text="ok", action=None, success=True, **about):
    tree = gateway(**about)
    tree["turns"][0]["action"] = action or {"type": "response", "raw_response": text}
    tree["turns"][0]["result"]["success"] = success
    return episode(tree, raw_total=0.0)


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (answered("I'm sorry, but I can't help with that."), "refusal"),
        (answered(finish_reasons={"length": 1}), "cut_off"),
        (answered(finish_reasons={"content_filter": 1, "stop": 2}), "content_filter"),
        (answered(action={"type": "tool_call", "tool_name": "sql"}, success=False), "tool_error"),
        (answered(), "low_reward"),
    ],
)
def test_what_went_wrong_is_told_by_how_it_ended(made, kind):
    assert fact(made, "low_reward").kind == kind


def test_its_circumstances_are_labels_and_numbers():
    tree = gateway(prompt_bytes=12_000, first_token_ms=250.5, finish_reasons={"stop": 1})
    tree["turns"][0]["action"] = {"type": "tool_call", "tool_name": "search+sql"}
    tree["turns"][0]["observation"]["context"] = {"available_tools": ["search", "sql", "mail"]}
    found = fact(episode(tree))
    assert found.labels == {
        "domain": ("coding",),
        "agent": ("a",),
        "user": ("0bfe935e70",),
        "tool": ("search", "sql"),
        "tool offered": ("mail", "search", "sql"),
        "finish reason": ("stop",),
        "hour of day": ("14:00 UTC",),
    }
    assert found.numbers == {
        "prompt length": 12_000.0,
        "time": AT.timestamp(),
        "first-token latency": 250.5,
    }


def test_where_nobody_measured_the_prompt_all_that_was_seen_counts():
    found = fact(episode(small()))
    assert found.numbers["prompt length"] == len('"go"')


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
KEYS = st.sampled_from(
    ["rollout", "named", "errors", "failures", "finish_reasons", "first_token_ms", "prompt_bytes"]
)


@given(st.dictionaries(KEYS, JSON, max_size=7), JSON, JSON)
def test_whatever_stands_in_metadata_and_turns_nothing_breaks(about, turn, other):
    tree = {"turns": [turn, other], "metadata": {"gateway": about}}
    found = fact(episode(tree))
    assert isinstance(found.failed, bool)
    assert all(isinstance(each, float) for each in found.numbers.values())


@given(st.binary(max_size=200))
def test_a_body_that_is_none_says_nothing(body):
    assert isinstance(read_episode(episode(body=body)), EpisodeReading)
    assert read_episode(episode(body=msgspec.json.encode([1]))) == EpisodeReading()
