"""Opinion: the table of its docstring, one voice each, in any order."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scoring_cases import ID, feedback

from upswing.contracts import Feedback, decode
from upswing.errors import Rejected
from upswing.reward.opinion import opinion


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
    found = opinion(words)
    assert (found.value, found.source) == (score, "human")


@pytest.mark.parametrize("rating", [0, 6, 2.5, "5", None, 1e9])
def test_stars_beyond_the_scale_never_arrive(rating):
    tree = {"feedback_id": "f", "timestamp": "2025-12-08T13:00:00Z", "trajectory_id": ID,
            "type": "rating", "rating": rating}  # fmt: skip
    with pytest.raises(Rejected):
        decode(Feedback, msgspec.json.encode(tree))


def test_nobody_is_named_in_the_score():
    assert "secret-user" not in repr(opinion([feedback(user="secret-user")]))


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
    assert opinion(told) == opinion(shuffled)
    assert 0 <= opinion(told).value <= 1
