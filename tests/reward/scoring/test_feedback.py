"""Opinion: the table of its docstring, one voice each, in any order."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scoring_cases import ID, feedback

from upswing.contracts import Feedback, decode
from upswing.errors import Rejected
from upswing.reward.core.feedback import feedback_score


@pytest.mark.parametrize(
    ("words", "score"),
    [
        ([], 0.5),
        ([feedback("thumbs_up")], 1.0),
        ([feedback("thumbs_down")], 0.0),
        *(([feedback("rating", rating=n)], (n - 1) / 4) for n in range(1, 6)),
        ([feedback("correction")], 0.2),
        ([feedback("abandoned")], 0.0),
        ([feedback("comment", comment="hm")], 0.5),
        ([feedback("thumbs_down"), feedback("comment", comment="sorry", minute=5)], 0.0),
        ([feedback("thumbs_down"), feedback("thumbs_up", minute=5)], 1.0),
        ([feedback("thumbs_down", number=2), feedback("thumbs_up", number=1)], 0.0),
        ([feedback("thumbs_up", user="a"), feedback("correction", user="b")], 0.6),
        ([feedback("thumbs_down", user=None), feedback("thumbs_up", user=None, minute=1)], 1.0),
    ],
)
def test_the_table_of_words(words, score):
    found = feedback_score(words)
    assert (found.value, found.source) == (score, "human")


@pytest.mark.parametrize("rating", [0, 6, 2.5, "5", None, 1e9])
def test_stars_beyond_the_scale_never_arrive(rating):
    tree = {
        "feedback_id": "f",
        "timestamp": "2025-12-08T13:00:00Z",
        "trajectory_id": ID,
        "type": "rating",
        "rating": rating,
    }
    with pytest.raises(Rejected):
        decode(Feedback, msgspec.json.encode(tree))


def test_nobody_is_named_in_the_score():
    assert "secret-user" not in repr(feedback_score([feedback(user="secret-user")]))


KINDS = ["thumbs_up", "thumbs_down", "correction", "abandoned", "rating", "comment"]
words = st.builds(
    feedback,
    st.sampled_from(KINDS),
    user=st.sampled_from(["a", "b", "c", None]),
    minute=st.integers(0, 3),
    number=st.integers(),
    rating=st.integers(1, 5),
    comment=st.just("x"),
)


@given(st.lists(words, max_size=8, unique_by=lambda w: w.feedback_id), st.randoms())
def test_the_order_of_arrival_does_not_matter(told, rng):
    shuffled = list(told)
    rng.shuffle(shuffled)
    assert feedback_score(told) == feedback_score(shuffled)
    assert 0 <= feedback_score(told).value <= 1


def next_message(text, **more):
    """What the user wrote next, as a recorder tells it that records requests one by one."""
    return feedback("comment", comment=text, metadata={"follow_up": True}, **more)


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("No, that is wrong.", 0.2, 0.35),
        ("Nein, ich meinte Spalte B.", 0.2, 0.35),
        ("Thank you, that is perfect!", 0.6, 0.75),
        ("Now write a test for it.", 0.5, 0.5),
        ("", 0.5, 0.5),
    ],
)
def test_the_next_message_shows_what_its_writer_thinks(text, low, high):
    found = feedback_score([next_message(text or " ")])
    assert low <= found.value <= high
    if found.value != 0.5:
        assert "in the next message" in found.reasoning
        assert found.source == "automated"


def test_a_spoken_word_counts_and_not_the_next_message():
    found = feedback_score([feedback("thumbs_up"), next_message("No, that is wrong.", minute=3)])
    assert found.value == 1.0
    assert "not what their turns show" in found.reasoning


def test_the_last_of_several_next_messages_decides():
    found = feedback_score(
        [next_message("Thanks, perfect!"), next_message("No, that is wrong.", minute=2)]
    )
    assert found.value < 0.5


def test_a_revision_reads_the_next_message_once():
    from upswing.reward.core.implicit import signals_from_raw

    said = [next_message("No, that is wrong.")]
    first = feedback_score(said)
    again = feedback_score(said, signals_from_raw(first.raw_data["implicit"]))
    assert again == first


def test_a_comment_that_is_none_is_no_signal():
    assert feedback_score([feedback("comment", comment="No, that is wrong.")]).value == 0.5
    odd = feedback("comment", comment="No, that is wrong.", metadata={"follow_up": "yes"})
    assert feedback_score([odd]).value == 0.5
