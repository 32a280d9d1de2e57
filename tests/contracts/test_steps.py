"""Steps and rows become trajectories, and nothing is lost on the way."""

import copy
import json
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upswing.contracts import Trajectory, from_builtins
from upswing.contracts.examples import EXAMPLES
from upswing.contracts.steps import (
    COLUMNS,
    is_table_row,
    outcome_metadata_of,
    parse_time,
    row_from_trajectory,
    trajectory_from_row,
    trajectory_from_steps,
    turn_from_step,
    uuid_for_external_id,
    window_id_at,
)
from upswing.errors import Reason, Rejected

NOON = datetime(2025, 11, 13, 12, tzinfo=UTC)
STEP = {
    "stepNumber": 1,
    "timestamp": 1763035200000,
    "environmentState": {"balance": 1000, "pnl": 50, "note": "calm"},
    "providerAccesses": [{"providerId": "news"}],
    "llmCalls": [
        {"model": "small", "userPrompt": "first", "response": "draft"},
        {"model": "big", "userPrompt": "Trade?", "response": "Buy.", "latencyMs": 12},
    ],
    "action": {
        "actionType": "trade",
        "parameters": {"side": "buy"},
        "success": True,
        "result": {"filled": 1},
        "reasoning": "It is cheap.",
    },
    "reward": 0.8,
}


def row(**changes):
    given = {
        "trajectoryId": "traj-1",
        "agentId": "agent-1",
        "startTime": NOON,
        "endTime": NOON + timedelta(minutes=1),
        "stepsJson": json.dumps([STEP]),
        "finalStatus": "completed",
        "totalReward": 10.5,
        "finalPnL": Decimal("60.5"),
    }
    return given | changes


def test_a_step_with_a_prompt_is_a_turn_that_answers_it():
    assert turn_from_step(STEP, default_time=NOON) == {
        "turn_id": 1,
        "timestamp": "2025-11-13T12:00:00Z",
        "observation": {
            "type": "user_message",
            "content": "Trade?",
            "context": {
                "memory_state": {
                    "environment_state": {"balance": 1000, "pnl": 50, "note": "calm"},
                    "provider_accesses": [{"providerId": "news"}],
                }
            },
        },
        "thought_process": ["It is cheap."],
        "action": {
            "type": "tool_call",
            "tool_name": "trade",
            "tool_args": {"side": "buy"},
            "raw_response": "Buy.",
        },
        "result": {"success": True, "output": {"filled": 1}},
    }


def test_keys_may_be_in_snake_case():
    step = {
        "step_number": 2,
        "environment_state": {"x": 1},
        "action": {"action_type": "go", "error": "no"},
    }
    turn = turn_from_step(step, default_time=NOON)
    assert turn["turn_id"] == 2
    assert turn["observation"] == {"type": "system_message", "content": {"x": 1}}
    assert turn["action"] == {"type": "tool_call", "tool_name": "go", "tool_args": {}}
    assert turn["result"] == {"success": False, "error": "no"}


def test_an_empty_step_is_still_a_valid_turn():
    trajectory_from_steps({"trajectory_id": "t", "agent_id": "a"}, [{}], {})


def test_rewards_numbers_and_what_a_turn_cannot_hold_are_kept_in_the_metadata():
    made = trajectory_from_steps(
        {"trajectoryId": "t", "agentId": "a", "startTime": NOON, "episodeId": "e"},
        [STEP, {**STEP, "stepNumber": 2, "reward": None, "mood": "good", "llmCalls": []}],
        {"finalStatus": "partial", "share": 0.4, "totalReward": 1.5, "finalBalance": 1010},
    )
    about = made["metadata"]
    assert about["model"] == "big"
    assert about["window_id"] == about["scenario_id"] == "2025-11-13T12:00"
    assert about["outcome"] == {"status": "partial", "share": 0.4}
    assert about["environment"] == {"balance": 1010, "pnl": 50}
    assert about["step_rewards"] == [0.8, None]
    assert about["total_reward"] == 1.5
    assert about["external_id"] == "t"
    assert about["steps"] == [
        {"turn_id": 1, "llm_calls": [STEP["llmCalls"][0], {"model": "big", "latencyMs": 12}]},
        {"turn_id": 2, "mood": "good"},
    ]
    assert (made["session_id"], made["trajectory_id"]) == ("e", uuid_for_external_id("t"))


def test_steps_that_count_from_nought_are_turns_that_count_from_one():
    steps = [{"stepNumber": n} for n in (0, 1, 2)]
    made = trajectory_from_steps({"trajectory_id": "t", "agent_id": "a"}, steps, {})
    assert [turn["turn_id"] for turn in made["turns"]] == [1, 2, 3]
    assert [each["step_number"] for each in made["metadata"]["steps"]] == [0, 1, 2]


@pytest.mark.parametrize(
    ("status", "share", "outcome"),
    [
        ("completed", None, {"status": "completed", "share": 1.0}),
        ("failed", None, {"status": "failed", "share": 0.0}),
        ("timeout", None, {"status": "timeout", "share": 0.0}),
        ("partial", None, {"status": "partial"}),
        ("partial", 0.25, {"status": "partial", "share": 0.25}),
        ("partial", 7, {"status": "partial", "share": 7}),
        ("completed", "0.3", {"status": "completed", "share": "0.3"}),
        (None, 0.3, {"share": 0.3}),
    ],
)
def test_a_status_says_what_share_is_done_where_it_can(status, share, outcome):
    assert outcome_metadata_of(status, share) == outcome


def test_a_row_becomes_a_trajectory():
    made = trajectory_from_row(
        row(
            scenarioId="s",
            windowId="2025-11-13T12:00",
            aiJudgeReward=0.7,
            judgedAt=NOON,
            aiJudgeReasoning="Good.",
            metadataJson={"task": "Trade well.", "domain": "general"},
            rewardComponentsJson='{"market": 1}',
            isTrainingData=True,
        )
    )
    from_builtins(Trajectory, made)
    assert made["trajectory_id"] == uuid_for_external_id("traj-1")
    assert made["end_timestamp"] == "2025-11-13T12:01:00Z"
    assert made["task_context"] == {
        "task_id": "s",
        "instructions": "Trade well.",
        "domain": "general",
    }
    about = made["metadata"]
    assert about["external_id"] == "traj-1"
    assert about["environment"]["pnl"] == 60.5
    assert (about["ai_judge_reward"], about["judged_at"]) == (0.7, "2025-11-13T12:00:00Z")
    assert about["reward_components"] == {"market": 1}
    assert about["row"] == {"is_training_data": True}


def test_a_row_in_snake_case_is_the_same_row():
    snake = {
        "trajectory_id": "traj-1",
        "agent_id": "agent-1",
        "start_time": NOON.isoformat(),
        "end_time": (NOON + timedelta(minutes=1)).isoformat(),
        "steps_json": [STEP],
        "final_status": "completed",
        "total_reward": 10.5,
        "final_pnl": 60.5,
    }
    assert trajectory_from_row(snake) == trajectory_from_row(row())


def test_an_id_that_is_a_uuid_stays_itself():
    tid = "0D4C7A52-7F2E-4C39-9A4E-6F8D2F0B8A11"
    assert trajectory_from_row(row(trajectoryId=tid))["trajectory_id"] == str(UUID(tid))


@pytest.mark.parametrize(
    ("changes", "reason", "word"),
    [
        ({"stepsJson": "[{"}, Reason.MALFORMED, "stepsJson"),
        ({"stepsJson": "{}"}, Reason.SCHEMA, "stepsJson"),
        ({"stepsJson": "[]"}, Reason.SCHEMA, "at least one step"),
        ({"stepsJson": "[1]"}, Reason.SCHEMA, "at least one step"),
        ({"agentId": None}, Reason.SCHEMA, "agent_id"),
        ({"trajectoryId": ""}, Reason.SCHEMA, "trajectory_id"),
        ({"startTime": "soon"}, Reason.SCHEMA, "time"),
        ({"metadataJson": "no"}, Reason.MALFORMED, "metadataJson"),
        ({"metadataJson": {"temperature": 9}}, Reason.SCHEMA, "temperature"),
    ],
)
def test_a_bad_row_is_rejected_with_a_sentence(changes, reason, word):
    with pytest.raises(Rejected, match=word) as caught:
        trajectory_from_row(row(**changes))
    assert caught.value.reason is reason


def test_rows_are_told_from_other_things():
    assert is_table_row(row())
    assert not is_table_row(EXAMPLES[Trajectory])
    assert not is_table_row([row()])
    with pytest.raises(Rejected):
        trajectory_from_row(EXAMPLES[Trajectory])


def test_a_row_has_every_column_and_the_numbers_in_theirs():
    made = row_from_trajectory(trajectory_from_row(row()), created_at=NOON)
    assert tuple(made) == COLUMNS
    assert (made["trajectoryId"], made["totalReward"], made["finalPnL"]) == ("traj-1", 10.5, 60.5)
    assert (made["finalStatus"], made["episodeLength"], made["durationMs"]) == (
        "completed",
        1,
        60000,
    )
    (step,) = json.loads(made["stepsJson"])
    assert step["action"]["actionType"] == "trade"
    assert step["reward"] == 0.8


def test_a_row_of_ours_with_a_spoilt_turn_is_rejected():
    made = row_from_trajectory(EXAMPLES[Trajectory], created_at=NOON)
    with pytest.raises(Rejected, match="turn"):
        trajectory_from_row(made | {"stepsJson": [{"turn": {"turn_id": 1}}]})


def test_a_turn_of_somebodys_game_is_no_turn_of_ours():
    made = trajectory_from_row(row(stepsJson=[{"turn": {"player": "white"}}]))
    assert made["metadata"]["steps"] == [{"turn_id": 1, "turn": {"player": "white"}}]


def test_a_row_judged_in_the_table_carries_its_judgement():
    made = row_from_trajectory(EXAMPLES[Trajectory], created_at=NOON)
    back = trajectory_from_row(made | {"aiJudgeReward": 0.9})
    assert back["metadata"]["ai_judge_reward"] == 0.9


# --- laws ------------------------------------------------------------------------------------

words = st.text(max_size=8)
values = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | words
trees = st.dictionaries(words, values, max_size=3)
times = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
kinds = st.sampled_from(["user_message", "tool_result", "subordinate_response", "system_message"])
acts = st.sampled_from(["tool_call", "subordinate_call", "response", "memory_update"])
turns = st.fixed_dictionaries(
    {
        "observation": st.fixed_dictionaries(
            {"type": kinds, "content": words | trees}, optional={"context": st.just({})}
        ),
        "action": st.fixed_dictionaries(
            {"type": acts}, optional={"tool_name": words, "tool_args": trees, "raw_response": words}
        ),
        "result": st.fixed_dictionaries(
            {"success": st.booleans()},
            optional={"output": words | trees | st.none(), "error": words | st.none()},
        ),
        "timestamp": times.map(datetime.isoformat) | times.map(lambda t: f"{t:%Y-%m-%dT%H:%M:%SZ}"),
    },
    optional={"thought_process": st.lists(words, max_size=2)},
)
metadata = st.fixed_dictionaries(
    {"model": words},
    optional={
        "outcome": trees,
        "environment": trees,
        "step_rewards": st.lists(values, max_size=3),
        "total_reward": values,
        "external_id": words,
        "steps": values,
        "trajectory": trees,
        "window_id": words,
        "row": trees,
        "metrics": trees,
        "ai_judge_reward": st.floats(0, 1),
    },
)


@st.composite
def trajectories(draw):
    made = copy.deepcopy(EXAMPLES[Trajectory])
    made["turns"] = [
        {"turn_id": place, **turn}
        for place, turn in enumerate(draw(st.lists(turns, min_size=1, max_size=3)), 1)
    ]
    made["metadata"] = draw(metadata)
    made["task_context"] |= draw(
        st.dictionaries(words.filter(lambda w: w not in made["task_context"]), values)
    )
    return made


@given(trajectories())
def test_every_trajectory_comes_back_from_its_row_as_it_was(made):
    stored = json.loads(json.dumps(row_from_trajectory(made, created_at=NOON)))
    assert trajectory_from_row(stored) == made


steps = st.fixed_dictionaries(
    {},
    optional={
        "stepNumber": st.integers(0, 9),
        "timestamp": times | times.map(lambda t: t.timestamp()),
        "environmentState": trees | values | st.lists(values),
        "reward": values | st.floats(),
        "llmCalls": st.lists(trees | st.fixed_dictionaries({"response": values}), max_size=2),
        "action": trees
        | values
        | st.fixed_dictionaries(
            {},
            optional={
                "type": values,
                "params": values | trees,
                "success": values,
                "result": values | st.lists(values),
                "error": values | trees,
                "reasoning": values | st.lists(values),
            },
        ),
    },
)


@given(st.lists(steps, min_size=1, max_size=4))
def test_whatever_the_steps_say_the_trajectory_is_valid(told):
    made = trajectory_from_steps({"trajectory_id": "t", "agent_id": "a"}, told, {})
    from_builtins(Trajectory, made)
    assert len(made["turns"]) == len(told)


@given(times, st.integers(1, 30))
def test_a_window_holds_the_moment_it_is_made_from(when, hours):
    window = datetime.fromisoformat(window_id_at(when, hours)).replace(tzinfo=UTC)
    assert timedelta(0) <= when - window < timedelta(hours=min(hours, 24))
    assert window_id_at(
        when.astimezone(timezone(timedelta(hours=5, minutes=30))), hours
    ) == window_id_at(when, hours)


def test_a_window_of_no_hours_is_rejected():
    with pytest.raises(Rejected):
        window_id_at(NOON, 0)


@pytest.mark.parametrize(
    "told",
    [
        NOON,
        NOON.replace(tzinfo=None),
        NOON.isoformat(),
        "2025-11-13 12:00:00+00",
        1763035200,
        1763035200000,
    ],
)
def test_a_moment_is_read_however_it_is_told(told):
    assert parse_time(told, datetime.fromtimestamp(0, UTC)) == NOON
