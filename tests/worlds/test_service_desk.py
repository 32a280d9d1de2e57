"""The service desk: what helps, what must be found out, and what is nobody's fault."""

import re
from collections import Counter
from datetime import UTC, datetime
from itertools import pairwise
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upswing.worlds import desk_cases, desk_code
from upswing.worlds.desk import AGAIN, DOWN, FOUND, SECOND, ServiceDesk
from upswing.worlds.desk_code import MEANING, PATCHES, value_of_expression
from upswing.worlds.episode import Episode, EpisodeStep
from upswing.worlds.recording import to_trajectories
from upswing.worlds.triage import RULE

WORLD = ServiceDesk(0)


def find(tasks=WORLD.training, **wanted):
    return next(
        case for case in tasks if all(getattr(case, key) == to for key, to in wanted.items())
    )


def after(case, *replies, world=WORLD):
    state = world.reset(case)
    for reply in replies:
        state = world.step(state, reply)
    return state


def ended(case, *replies):
    return WORLD.outcome(after(case, *replies))


def wrong(case):
    return next(word for word in ("refund", "explain", "up", "down") if not case.solved_by(word))


def test_cases_come_in_the_shares_of_the_documentation():
    rows = re.findall(r"^\| (\w+) +\| (\d+) ", desk_cases.__doc__, re.MULTILINE)
    said = {kind: int(share) for kind, share in rows}
    assert sum(said.values()) == 16
    for start, end in pairwise(range(0, 161, 16)):
        assert Counter(case.kind for case in WORLD.training[start:end]) == said


def test_the_patches_in_the_documentation_are_the_rule():
    rows = re.findall(r"^\| (\w+) +\| (\w+) +\| (x .+ y) +\|$", desk_code.__doc__, re.MULTILINE)
    assert {function: word for function, word, _ in rows} == PATCHES
    assert {word: expression for _, word, expression in rows} == MEANING


def test_the_same_seed_makes_the_same_cases_and_another_seed_others():
    assert ServiceDesk(3).training == ServiceDesk(3).training
    assert ServiceDesk(3).held_out[0].text != ServiceDesk(4).held_out[0].text


def test_held_out_cases_are_not_among_those_to_learn_from():
    every = (*WORLD.training, *WORLD.held_out)
    assert len({(case.text, case.about) for case in every}) == len(every) == 1328
    assert len({case.task_id for case in every}) == 1328


def test_a_longer_training_list_changes_no_case():
    short, long = ServiceDesk(0, (96, 176)), ServiceDesk(0, (500, 176))
    assert short.held_out == long.held_out
    assert short.training == long.training[:96]


def test_the_prompt_does_not_give_the_answer_away():
    for case in WORLD.held_out:
        assert case.answer not in case.text.split()
        same = [one for one in WORLD.held_out if one.instructions == case.instructions]
        assert len({one.answer for one in same}) == 4
        assert (case.about in case.text.split()) == (case.kind != "hidden")


def test_every_word_is_one_token_of_the_small_model():
    from upswing.train.bases.tiny.tokenizer import build_tokenizer

    texts = [f"{case.instructions} {case.text} {case.answer}" for case in WORLD.held_out]
    words = {word for text in (*texts, AGAIN, DOWN, "it is a") for word in text.split()}
    spelled = build_tokenizer()([f" {word}" for word in sorted(words - {"x", "y"})])["input_ids"]
    assert {len(ids) for ids in spelled} == {1}


@pytest.mark.parametrize("kind", ["named", "code"])
def test_the_right_answer_at_once_is_worth_everything(kind):
    case = find(kind=kind)
    outcome = ended(case, f"  {case.answer.title()}\n")
    assert (outcome.success, outcome.score, outcome.mood) == (True, 1.0, "pleased")


@pytest.mark.parametrize("kind", ["named", "hidden", "code"])
def test_a_patient_user_corrects_once_and_then_gives_up(kind):
    case = find(kind=kind, patient=True)
    state = after(case, wrong(case))
    assert WORLD.outcome(state) is None
    assert WORLD.observe(state).text == AGAIN
    second = ended(case, wrong(case), case.answer)
    assert (second.success, second.score, second.mood) == (True, SECOND, "corrected")
    assert ended(case, wrong(case), wrong(case)).mood == "gave_up"


@pytest.mark.parametrize("kind", ["named", "hidden", "code"])
def test_an_impatient_user_gives_up_at_once(kind):
    case = find(kind=kind, patient=False)
    outcome = ended(case, wrong(case))
    assert (outcome.success, outcome.score, outcome.mood) == (False, 0.0, "gave_up")


def test_patience_can_be_read_from_the_ticket():
    for case in WORLD.training:
        assert case.patient == (case.text.split()[-1] in ("calm", "patient"))


def test_the_lookup_shows_what_the_ticket_hides():
    case = find(kind="hidden", outage="none", patient=False)
    looked = after(case, "lookup")
    assert WORLD.observe(looked).kind == "tool_result"
    assert WORLD.observe(looked).text == f"it is a {case.about}"
    assert ended(case, "lookup", case.answer).score == 1.0


def test_to_have_found_out_is_worth_a_part_and_only_where_it_was_hidden():
    hidden = find(kind="hidden", outage="none", patient=False)
    assert ended(hidden, "lookup", wrong(hidden)).score == FOUND
    named = find(kind="named", patient=False)
    assert ended(named, "lookup", wrong(named)).score == 0.0


def test_a_lookup_that_has_answered_is_no_answer_itself():
    case = find(kind="hidden", outage="none", patient=False)
    assert not ended(case, "lookup", "lookup").success
    assert not ended(find(kind="code", patient=False), "lookup").success


def test_a_lookup_that_is_down_for_a_moment_answers_when_asked_again():
    case = find(outage="moment")
    assert WORLD.observe(after(case, "lookup")).text == DOWN
    assert WORLD.observe(after(case, "lookup", "lookup")).text == f"it is a {case.about}"
    outcome = ended(case, "lookup", "lookup", case.answer)
    assert (outcome.score, outcome.fault) == (1.0, False)


def test_a_lookup_that_is_down_for_good_is_not_the_agents_fault():
    case = find(outage="good")
    waits = ended(case, "lookup", "lookup")
    assert (waits.success, waits.fault, waits.mood) == (False, True, None)
    assert ended(case, "lookup", case.answer).fault, "a guess, and no merit"
    assert not ended(case, case.answer).fault, "who has not asked was not let down"


def test_no_lookup_is_down_for_good_where_agents_are_measured():
    assert Counter(case.outage for case in WORLD.held_out)["good"] == 0
    outages = Counter(case.outage for case in WORLD.training if case.kind == "hidden")
    assert outages == {"none": 216, "moment": 36, "good": 36}


def test_a_fault_is_recorded_as_one_and_other_episodes_are_not():
    trees = []
    for case, reply in ((find(outage="good"), "lookup"), (find(kind="named"), "nothing")):
        state = after(case, reply, reply)
        steps = tuple(
            EpisodeStep(WORLD.observe(WORLD.reset(case)), reply, (1,), (2,), (-0.1,))
            for _ in range(2)
        )
        episode = Episode("desk", case, "m", 0, 1.0, steps, WORLD.outcome(state))
        trees += to_trajectories(
            [episode],
            namespace=UUID(int=1),
            window_id="2026-11-15T10:00",
            started=datetime(2026, 11, 15, 10, tzinfo=UTC),
        )
    assert [tree["metadata"].get("infra_error") for tree in trees] == [True, None]


@given(
    st.sampled_from(WORLD.training),
    st.lists(st.sampled_from(["lookup", *RULE.values(), "up", "?"]), min_size=4, max_size=4),
)
def test_every_case_is_over_within_the_turns_and_then_stays_as_it_is(case, replies):
    state = after(case, *replies)
    outcome = WORLD.outcome(state)
    assert outcome is not None
    assert 0.0 <= outcome.score <= 1.0
    assert outcome.success == case.solved_by(state.answers[-1] if state.answers else "")
    assert WORLD.step(state, case.answer) == state
    assert WORLD.observe(state).kind == "system_message"


@pytest.mark.parametrize("function", PATCHES)
def test_an_expression_repairs_what_its_word_repairs(function):
    cases = [case for case in WORLD.training if case.about == function][:10]
    for case in cases:
        right = [word for word in MEANING if case.solved_by(word)]
        assert right == [PATCHES[function]]
        assert [word for word in MEANING if case.solved_by(MEANING[word])] == right
        assert case.solved_by(f"({MEANING[case.answer]}) + 0")
        assert not case.solved_by(str(value_of_expression(MEANING[case.answer], *case.cases[0])))


NO_EXPRESSIONS = (
    *("", " " * 5, "z", "x //", "1x", "0x", "!x", "x, y", "x = y", "x(y)", "x\n+ y"),
    *("x **  y", "x / y", "x < y < 9", "x % (y - y)", "x if y else 1", "__import__('os')"),
    *("(" * 40, "9" * 81),
)


@pytest.mark.parametrize("text", NO_EXPRESSIONS)
def test_what_is_no_expression_of_the_desk_has_no_value(text):
    assert value_of_expression(text, 7, 3) is None


@given(st.text(alphabet="xy0123456789+-*/%<>=!() ", max_size=90), st.integers(-9, 99))
def test_any_text_has_a_whole_value_or_none(text, x):
    found = value_of_expression(text, x, 3)
    assert found is None or type(found) is int
