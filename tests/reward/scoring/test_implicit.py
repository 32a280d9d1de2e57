"""What a user's own behaviour moves: each signal once, and never against the user's word."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scoring_cases import feedback, trajectory, turn

from upswing.reward.core.completion import completion_score
from upswing.reward.core.feedback import explicit_score, feedback_score
from upswing.reward.core.implicit import (
    ANSWER,
    MESSAGE,
    SILENT,
    TURNS,
    VOTES,
    ImplicitSignal,
    ImplicitSignals,
    implicit_signals,
    signals_from_raw,
    user_exchanges,
    user_text,
)
from upswing.reward.core.implicit_text import SignalKind

THANKS, CORRECTION = SignalKind.THANKS, SignalKind.CORRECTION
REPEAT, ABANDONED = SignalKind.REPEAT, SignalKind.ABANDONED
SAYS = {
    THANKS: ("Thanks!", "Vielen Dank", "谢谢"),
    CORRECTION: ("No, column B", "Das stimmt nicht", "それは違います"),
    REPEAT: ("Sort the list by name",),
    None: ("Now the next column, please", "Und jetzt Spalte C"),
}
FIRST = "Sort the list by name"


def talk(*says, **metadata):
    """A conversation: the user asks, the agent answers, and so on."""
    asked = [
        turn(says=each, seen="user_message", does="response", raw_response="Here it is.")
        for each in (FIRST, *says)
    ]
    return trajectory(*asked, **metadata)


def kinds(shown):
    return [each.kind for each in shown.found]


scripts = st.lists(
    st.sampled_from([(kind, text) for kind, texts in SAYS.items() for text in texts]), max_size=6
)


@given(scripts)
def test_each_turn_says_what_it_says(script):
    """A repeat is one of the request just answered, and none where it is a template."""
    asked = [FIRST, *(text for _, text in script)]
    wanted = []
    for (kind, text), before in zip(script, asked, strict=False):
        again = text == before and asked.count(text) < 3
        if kind in (REPEAT, None):
            wanted += [REPEAT] if again else []
        else:
            wanted.append(kind)
    assert kinds(implicit_signals(talk(*asked[1:]))) == wanted


@given(scripts)
def test_nothing_is_counted_twice(script):
    """Complaints in completion and the one in user_feedback are all there are, and none of them is both."""
    made = talk(*(text for _, text in script))
    shown = implicit_signals(made)
    last = shown.deciding
    taken = last is not None and last.kind in (CORRECTION, REPEAT)
    assert shown.complaints_before() + taken == shown.complaints()
    alone, beside = completion_score(made), completion_score(made, shown.complaints_before())
    assert beside.value >= alone.value
    assert beside.raw_data["corrections"] == alone.raw_data["corrections"] - taken


@given(scripts)
def test_a_reported_outcome_is_not_touched(script):
    made = talk(*(text for _, text in script), outcome="completed")
    assert completion_score(made, implicit_signals(made).complaints_before()).value == 1.0


@pytest.mark.parametrize(("kind", "sign"), [(THANKS, 1), (CORRECTION, -1), (REPEAT, -1)])
def test_it_moves_the_opinion_and_says_so(kind, sign):
    for text in SAYS[kind]:
        shown = implicit_signals(talk(text))
        score = feedback_score([], shown)
        assert (score.value - 0.5) * sign > 0
        assert "implicit" in score.reasoning
        assert score.raw_data["implicit"]["signal"] == kind.value
        assert (score.raw_data["voices"], score.source) == (0, "automated")
        assert score.confidence == shown.deciding.confidence
        assert explicit_score(score) is None, "it is no word of a user"


signals = st.builds(
    ImplicitSignal,
    st.sampled_from(SignalKind),
    st.floats(0, 1),
    st.integers(1, 9),
    st.sampled_from(["", "en", "ja"]),
    st.sampled_from(["rules", "a-judge"]),
)
shows = st.builds(
    ImplicitSignals, st.lists(signals, max_size=3).map(tuple), st.none() | st.integers(1, 9)
)


@given(signals, signals)
def test_a_surer_signal_is_worth_more_of_what_it_says(one, other):
    low, high = sorted((one, other), key=lambda each: each.confidence)
    if low.kind is high.kind:
        assert abs(low.value - 0.5) <= abs(high.value - 0.5) + 1e-9
    assert min(0.5, VOTES[one.kind]) <= one.value <= max(0.5, VOTES[one.kind])


@given(shows)
def test_what_is_kept_in_a_reward_is_read_back(shown):
    kept = signals_from_raw(shown.to_raw())
    assert (kept.deciding, kept.undecided) == (shown.deciding, shown.undecided)
    assert feedback_score([], kept) == feedback_score([], shown)


@pytest.mark.parametrize(
    "raw",
    [
        None,
        3,
        [],
        {},
        {"signal": "x"},
        {"signal": "thanks", "confidence": 7, "turn_id": 1},
        {"signal": "thanks", "confidence": "no"},
    ],
)
def test_what_others_keep_there_says_nothing(raw):
    assert signals_from_raw(raw) == SILENT


words = st.lists(
    st.builds(
        feedback,
        st.sampled_from(["thumbs_up", "thumbs_down", "comment"]),
        user=st.sampled_from(["me", "you", None]),
        number=st.integers(),
        comment=st.just("x"),
    ),
    max_size=5,
    unique_by=lambda word: word.feedback_id,
)


@given(words, shows, st.sampled_from(["me", None]))
def test_a_word_of_the_same_user_wins(said, shown, owner):
    votes = [word for word in said if word.type != "comment"]
    users = {word.user_id if isinstance(word.user_id, str) else None for word in votes}
    score = feedback_score(said, shown, owner)
    own = bool(votes) and (owner is None or None in users or owner in users)
    if own or shown.deciding is None:
        assert score.value == feedback_score(said).value
    elif not votes:
        assert score.value == shown.deciding.value
    else:
        others = feedback_score(said).value * len(users)
        assert score.value == pytest.approx((others + shown.deciding.value) / (len(users) + 1))
    counted = score.raw_data.get("implicit", {}).get("counted", False)
    assert counted == (shown.deciding is not None and not own)


@pytest.mark.parametrize(
    ("before", "now", "unclear"),
    [
        ("Show order 1", "Show order 12", False),
        ("What is 3*4", "What is 3*45?", False),
        ("Order 1 is it", "Reorder 1 is it", False),
        ("Write a poem", "Write a poem about Rome", True),
        ("Run the tests", "Now please run the tests", True),
    ],
)
def test_a_longer_request_is_not_the_same_one(before, now, unclear):
    shown = implicit_signals(talk(before, now))
    assert (kinds(shown), shown.undecided) == ([], 3 if unclear else None)


def test_a_request_that_comes_back_after_another_is_no_complaint():
    assert implicit_signals(talk("Fix the parser bug now", FIRST)) == SILENT


@pytest.mark.parametrize("turns", [TURNS - 1, TURNS, TURNS + 1, 16_000])
def test_only_the_last_turns_are_read(turns):
    made = talk(*(f"That is wrong, try number {n}" for n in range(turns)))
    read = user_exchanges(made)
    assert [each.turn_id for each in read] == [t.turn_id for t in made.turns[1:]][-TURNS:]
    assert read[-1].previous_request == user_text(made.turns[-2])


@pytest.mark.parametrize("size", [1, MESSAGE, MESSAGE + 1, ANSWER + 1, 2_000_000])
@pytest.mark.parametrize(
    "shape",
    [
        lambda text: text,
        lambda text: {"parts": [{"text": text}] * 2},
        lambda text: {"text": text},
        lambda text: {"messages": [{"role": "user", "content": [{"type": "text", "text": text}]}]},
    ],
)
def test_of_each_text_a_bounded_part_is_read(size, shape):
    text = "a" * size
    made = turn(says=shape(text), seen="user_message", does="response", raw_response=text)
    (read,) = user_exchanges(
        trajectory(turn(seen="user_message", does="response", raw_response=text), made)
    )
    assert (len(read.text) <= MESSAGE, len(read.answer) <= ANSWER) == (True, True)
    assert {read.answer[0], read.answer[-1], read.text[0], read.text[-1]} == {"a"}


def test_a_program_that_says_the_same_in_each_turn_does_not_complain():
    assert kinds(implicit_signals(talk(*[FIRST] * 5))) == []


def test_a_prompt_shown_with_every_step_is_not_asked_again():
    steps = [turn(says="Sort the list.", seen="user_message") for _ in range(5)]
    assert implicit_signals(trajectory(*steps)) == SILENT


@pytest.mark.parametrize("text", ["continue", "Weiter!", "yes", "继续"])
def test_going_on_twice_is_no_complaint(text):
    assert kinds(implicit_signals(talk(text, text))) == []


CANCELLED = {"gateway": {"cancelled": True, "ended_by": "idle"}}
RESET = {"reset": True}


@pytest.mark.parametrize(
    ("says", "metadata", "left"),
    [
        ((), CANCELLED, True),
        ((), RESET, True),
        (("No, column B",), RESET, True),
        (("Thanks!",), RESET, False),
        (("Thanks!",), CANCELLED, True),
        ((), {"gateway": {"ended_by": "idle"}}, False),
        ((), {"gateway": {"ended_by": "next"}}, False),
        ((), {"gateway": {"ended_by": "stop", "cancelled": False}}, False),
        ((), RESET | {"outcome": "completed"}, False),
        ((), RESET | {"outcome": {"status": "abandoned"}}, False),
        ((), CANCELLED | {"outcome": "cancelled"}, False),
        ((), CANCELLED | {"outcome": {"status": "partial", "share": 0.5}}, True),
        ((), {"reset": "yes"}, False),
    ],
)
def test_who_left_and_who_is_only_silent(says, metadata, left):
    shown = implicit_signals(talk(*says, **metadata))
    assert (bool(shown.found) and shown.found[-1].kind is ABANDONED) == left


def test_bitter_words_after_thanks_make_the_thanks_doubtful():
    shown = implicit_signals(talk("Thanks!", "Great, another error"))
    assert (shown.deciding, shown.undecided) == (None, 3)
    assert feedback_score([], shown).value == 0.5
    assert "not clear" in feedback_score([], shown).reasoning
    clear = implicit_signals(talk("That is wrong.", "Great, another error"))
    assert clear.deciding.kind is CORRECTION


@pytest.mark.parametrize(
    "content",
    [
        {
            "messages": [
                {"role": "tool", "content": "Thanks!"},
                {"role": "user", "content": "That is wrong."},
            ]
        },
        {
            "messages": [
                {"role": "user", "content": {"parts": [{"type": "text", "text": "That is wrong."}]}}
            ]
        },
        {"parts": [{"type": "image"}, {"type": "text", "text": "That is wrong."}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "That is wrong."}]}]},
        {"text": "That is wrong."},
        "That is wrong.",
    ],
)
def test_the_users_words_are_found_in_every_shape(content):
    first = turn(says=FIRST, seen="user_message", does="response")
    shown = implicit_signals(
        trajectory(first, turn(says=content, seen="user_message", does="response"))
    )
    assert kinds(shown) == [CORRECTION]


@pytest.mark.parametrize(
    "content",
    [
        {"messages": [{"role": "tool", "content": "That is wrong."}]},
        {"messages": [3]},
        {"parts": "x"},
        {},
    ],
)
def test_what_no_user_wrote_says_nothing(content):
    first = turn(says=FIRST, seen="user_message", does="response")
    assert kinds(implicit_signals(trajectory(first, turn(says=content, seen="user_message")))) == []


def test_tools_and_systems_have_no_opinion():
    for seen in ("tool_result", "system_message", "subordinate_response"):
        first = turn(says=FIRST, seen="user_message", does="response")
        shown = implicit_signals(trajectory(first, turn(says="That is wrong.", seen=seen)))
        assert shown == SILENT


def test_the_order_of_kinds_decides_and_not_their_number():
    """The last signal is the opinion, whatever came before it."""
    for order in itertools.permutations(("Thanks!", "That is wrong.", "Danke dir!")):
        last = implicit_signals(talk(*order)).deciding
        assert (last.kind is CORRECTION) == (order[-1] == "That is wrong.")
