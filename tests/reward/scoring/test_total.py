"""Weights, plugins, the sum, and the reward as a message."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scoring_cases import AT, feedback, trajectory, turn
from test_efficiency import SIX_ON_AVERAGE, of_turns

from upswing.contracts import Reward, decode, encode
from upswing.errors import Misuse
from upswing.reward.core.baseline import TrailingWindow
from upswing.reward.core.completion import completion_score
from upswing.reward.core.efficiency import efficiency_score
from upswing.reward.core.feedback import feedback_score
from upswing.reward.core.plugins import Plugin, load_plugins, score_with_plugins
from upswing.reward.core.quality import quality_score
from upswing.reward.core.score import Score
from upswing.reward.core.total import (
    RAW_TOTAL,
    build_reward,
    combine_scores,
    explain_reward,
    scale_weights,
)
from upswing.reward.core.weights import BUILT_IN, component_weights

NAMES = tuple(BUILT_IN)


def score(value=0.5, **more):
    return Score(value, more.pop("source", "automated"), "Because.", **more)


# --- weights ----------------------------------------------------------------------------------


def test_the_built_in_weights():
    assert list(component_weights({}).values()) == [0.40, 0.20, 0.15, 0.25]


def env(*values):
    names = ("TASK_COMPLETION", "EFFICIENCY", "CODE_QUALITY", "USER_FEEDBACK")
    return {f"REWARD_WEIGHT_{name}": v for name, v in zip(names, values, strict=False)}


def test_the_environment_wins_over_the_file():
    file = dict(zip(NAMES, (0.7, 0.1, 0.1, 0.1), strict=True))
    assert component_weights({}, file) == file
    found = component_weights(env("0.4", "0.2", "0.15", " 0.25 "), file)
    assert list(found.values()) == [0.4, 0.2, 0.15, 0.25]
    assert component_weights(env("", " ")) == component_weights({})


def test_plugins_take_their_share_when_nothing_is_stated():
    found = component_weights({}, plugins={"safety": 0.1, "accuracy": 0.1})
    assert found["task_completion"] == 0.32
    assert sum(found.values()) == pytest.approx(1)


def test_whoever_states_one_weight_states_them_all():
    stated = env("0.3", "0.2", "0.15", "0.25")
    assert component_weights(stated, plugins={"safety": 0.1})["task_completion"] == 0.3
    with pytest.raises(Misuse, match=r"sum to 1\.1, not 1"):
        component_weights(env("0.4", "0.2", "0.15", "0.25"), plugins={"safety": 0.1})
    assert (
        component_weights({"REWARD_WEIGHT_SAFETY": "0.5"}, plugins={"safety": 0.1})["efficiency"]
        == 0.1
    )


@pytest.mark.parametrize("bad", ["-0.1", "nan", "inf", "x", "0,4", "1.5", "--"])
def test_a_weight_that_is_no_weight_is_refused_by_name(bad):
    with pytest.raises(Misuse, match="REWARD_WEIGHT_TASK_COMPLETION is a number from 0 to 1"):
        component_weights(env(bad))


@pytest.mark.parametrize("bad", [math.nan, -1, True, None, [], 10**400])
def test_a_weight_in_the_file_is_checked_too(bad):
    with pytest.raises(Misuse, match="from 0 to 1"):
        component_weights({}, {"efficiency": bad})


def test_weights_that_cannot_be_are_refused():
    with pytest.raises(Misuse, match=r"sum to 1\.1"):
        component_weights(env("0.5"))
    with pytest.raises(Misuse, match="sum to"):
        component_weights({}, plugins={"a": 0.7, "b": 0.7})
    with pytest.raises(Misuse, match="no reward component called speed"):
        component_weights({}, {"speed": 1.0})


# --- plugins ----------------------------------------------------------------------------------


class Entry:
    def __init__(self, name, thing):
        self.name, self.thing = name, thing

    def load(self):
        if isinstance(self.thing, BaseException):
            raise self.thing
        return self.thing


def safe(_):
    return score(1.0)


safe.weight = 0.1


def test_plugins_are_loaded_or_refused_with_a_sentence():
    loaded = load_plugins(
        [
            Entry("safety", safe),
            Entry("accuracy", Plugin("accuracy", 0.2, safe)),
            Entry("twin", Plugin("accuracy", 0.2, safe)),
            Entry("efficiency", safe),
            Entry("broken", ImportError("no module named acme")),
            Entry("quits", SystemExit(3)),
            Entry("plain", len),
            Entry("heavy", Plugin("heavy", math.nan, safe)),
            Entry("odd", Plugin("odd", "much", safe)),
            Entry("Bad Name", safe),
        ]
    )
    assert [(p.name, p.weight) for p in loaded.plugins] == [("accuracy", 0.2), ("safety", 0.1)]
    assert len(loaded.refused) == 8
    assert all(sentence.startswith("The reward plugin") for sentence in loaded.refused)


@pytest.mark.parametrize(
    "answer",
    [
        0.5,
        "good",
        [],
        score(raw_data={"x": object()}),
        score(raw_data=[1]),
        score(confidence=math.nan),
        score(source="oracle"),
        KeyError("x"),
        SystemExit(1),
        RecursionError(),
    ],
)
def test_a_plugin_that_fails_is_absent_and_takes_nothing_with_it(answer):
    def bad(_):
        if isinstance(answer, BaseException):
            raise answer
        return answer

    said = score_with_plugins(
        [
            Plugin("bad", 0.1, bad),
            Plugin("quiet", 0.1, lambda _: None),
            Plugin("safety", 0.1, safe),
        ],
        trajectory(),
    )
    assert said.scores["bad"] is said.scores["quiet"] is None
    assert said.scores["safety"].value == 1
    assert list(said.failures) == ["bad"]
    assert said.failures["bad"].startswith("The plugin bad gave no score: ")


# --- the sum ----------------------------------------------------------------------------------


def binary_search():
    steps = [turn(output=str(i)) for i in range(4)]
    return trajectory(
        *steps,
        turn(does="response"),
        outcome={"status": "completed"},
        linter_results={"pylint": 9.0},
    )


def scores_of(trajectory, words=()):
    return {
        "task_completion": completion_score(trajectory),
        "efficiency": efficiency_score(trajectory, of_turns(*SIX_ON_AVERAGE)),
        "code_quality": quality_score(trajectory, None),
        "user_feedback": feedback_score(words),
    }


def test_binary_search_in_five_turns_is_worth_083():
    told = binary_search()
    total = combine_scores(scores_of(told), component_weights({}), {})
    assert [term.score.value for term in total.terms] == [1.0, 0.85, 0.90, 0.5]
    assert (total.raw_total, total.total, total.method) == (0.83, 0.83, "none")
    reward = decode(Reward, encode(build_reward(total, told, now=AT)))
    assert explain_reward(reward) == [
        "task_completion  0.400 × 1.000 = 0.4000  The task is reported as completed, by the agent itself, as no source is named.",
        "efficiency       0.200 × 0.850 = 0.1700  It took 5 turns (average 6).",
        "code_quality     0.150 × 0.900 = 0.1350  Reported: linter 0.90.",
        "user_feedback    0.250 × 0.500 = 0.1250  Nobody gave feedback, so it is neutral.",
        "raw total 0.83, the sum of weight × score",
        "total 0.83",
    ]


def test_a_reward_is_the_same_for_the_same_revision_and_another_for_the_next():
    told = binary_search()
    total = combine_scores(scores_of(told), component_weights({}), {})
    first, again, next_one = (build_reward(total, told, now=AT, revision=n) for n in (1, 1, 2))
    assert first == again
    assert first.reward_id != next_one.reward_id
    assert next_one.metadata["revision"] == 2


def test_each_component_is_normalised_against_its_own_history():
    told = binary_search()
    baselines = {
        "task_completion": TrailingWindow(numbers=[0.0, 1.0] * 50),
        "efficiency": TrailingWindow(numbers=[0.85] * 100),
        "code_quality": TrailingWindow(numbers=[0.1]),
        "user_feedback": TrailingWindow(numbers=[0.4, 0.6] * 50),
        RAW_TOTAL: TrailingWindow(numbers=[0.6, 0.8] * 50),
    }
    total = combine_scores(scores_of(told), component_weights({}), baselines)
    assert [t.normalised.value for t in total.terms] == [0.75, 0.5, 0.9, 0.5]
    assert total.total == pytest.approx(0.4 * 0.75 + 0.2 * 0.5 + 0.15 * 0.9 + 0.25 * 0.5)
    assert total.raw_total == 0.83
    reward = build_reward(total, told, now=AT, metadata={"window_id": "w", "revision": 99})
    assert reward.normalization.method == "z-score"
    assert (reward.normalization.min, reward.normalization.max) == (
        pytest.approx(0.6),
        pytest.approx(0.8),
    )
    assert reward.reward_components["task_completion"].raw_data["normalised"] == 0.75
    assert (reward.metadata["window_id"], reward.metadata["revision"]) == ("w", 1)
    assert explain_reward(reward)[0].startswith(
        "task_completion  0.400 × 1.000 = 0.4000 (normalised 0.750)"
    )
    assert explain_reward(reward)[-1] == "total 0.66, normalised by z-score against its history"


def test_an_absent_component_gives_its_weight_to_the_others():
    total = combine_scores(scores_of(trajectory()), component_weights({}), {})
    assert total.absent == ("code_quality",)
    used = {term.name: term.weight for term in total.terms}
    assert used["task_completion"] == pytest.approx(0.4 / 0.85)
    reward = build_reward(total, trajectory(), now=AT)
    assert explain_reward(reward)[-1] == "absent, weight shared out: code_quality"


@pytest.mark.parametrize(
    ("words", "method"),
    [
        ((), "automated"),
        ([feedback()], "hybrid"),
        ([feedback("comment", comment="x")], "automated"),
    ],
)
def test_people_are_named_when_they_had_a_say(words, method):
    total = combine_scores(scores_of(binary_search(), words), component_weights({}), {})
    assert build_reward(total, binary_search(), now=AT).metadata["evaluation_method"] == method


def test_a_foreign_reward_is_explained_as_far_as_it_goes():
    from upswing.contracts import from_builtins
    from upswing.contracts.examples import EXAMPLES

    lines = explain_reward(from_builtins(Reward, EXAMPLES[Reward]))
    assert lines[-1] == "total 0.82"
    bare = EXAMPLES[Reward] | {"metadata": {"evaluator": "x", "evaluation_method": "human"}}
    bare.pop("normalization")
    assert len(explain_reward(from_builtins(Reward, bare))) == 4


share = st.floats(0, 1)
names = st.text("abcdef", min_size=1, max_size=4)


@given(st.dictionaries(names, share, min_size=1, max_size=8))
def test_shared_out_weights_sum_to_one(present):
    assert sum(scale_weights(present).values()) == pytest.approx(1)


@given(
    st.dictionaries(names, st.tuples(share, share, st.none() | share), min_size=1, max_size=6),
    st.lists(share, max_size=50),
    st.sampled_from(["z-score", "min-max"]),
)
def test_any_total_is_in_range_and_can_be_written(told, history, method):
    scores = {k: None if v is None else score(v, confidence=c) for k, (_, c, v) in told.items()}
    if not any(scores.values()):
        scores["last"] = score()
    used = {"last": 0.0} | {k: w for k, (w, _, _) in told.items()}
    window = TrailingWindow(numbers=history)
    total = combine_scores(scores, used, dict.fromkeys([*scores, RAW_TOTAL], window), method)
    assert 0 <= total.total <= 1
    assert 0 <= total.raw_total <= 1
    reward = build_reward(total, trajectory(), now=AT)
    assert decode(Reward, encode(reward)) == reward
    assert explain_reward(reward)


@given(share, share, share)
def test_a_better_component_never_makes_the_total_worse(a, b, other):
    history = {"task_completion": TrailingWindow(numbers=[0.3, 0.9] * 20)}
    low, high = (
        combine_scores(
            {"task_completion": score(x), "efficiency": score(other)},
            component_weights({}),
            history,
        )
        for x in sorted((a, b))
    )
    assert low.raw_total <= high.raw_total
    assert low.total <= high.total
