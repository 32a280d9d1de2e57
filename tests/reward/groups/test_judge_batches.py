"""Large groups: batches overlap, and a consistent judge's order survives the merging."""

from itertools import pairwise, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judge_doubles import ObedientJudge, body, group, judged

from upswing.reward.core.batches import MergedScores, Unmergeable, merge_batches, plan_batches


@given(st.integers(1, 200), st.integers(3, 10), st.integers(1, 9))
def test_batches_cover_everybody_and_overlap(count, size, overlap):
    overlap = min(overlap, size - 1)
    names = [str(n) for n in range(count)]
    batches = plan_batches(names, size, overlap)
    assert set().union(*batches) == set(names)
    assert all(len(batch) <= size and len(set(batch)) == len(batch) for batch in batches)
    if count > size:
        assert all(len(batch) == size for batch in batches)
    assert all(len(set(a) & set(b)) >= overlap for a, b in pairwise(batches))


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_judge_that_is_consistent_up_to_an_offset_keeps_its_order(data):
    values = data.draw(st.lists(st.integers(200, 800), min_size=2, max_size=60))
    truth = {str(n): value / 1000 for n, value in enumerate(values)}
    batches = plan_batches(list(truth))
    offsets = [data.draw(st.floats(-0.2, 0.2)) for _ in batches]
    seen = [{n: truth[n] + o for n in batch} for batch, o in zip(batches, offsets, strict=True)]
    merged = merge_batches(seen)
    assert isinstance(merged, MergedScores)
    assert all(0 <= score <= 1 for score in merged.scores.values())
    rounded = {name: round(score, 7) for name, score in merged.scores.items()}
    for one, other in permutations(truth, 2):
        assert (truth[one] < truth[other]) == (rounded[one] < rounded[other])


def test_a_single_batch_is_left_as_it_is():
    assert merge_batches([{"a": 0.2, "b": 0.9}]).scores == {"a": 0.2, "b": 0.9}


def test_merging_out_of_range_keeps_the_order():
    merged = merge_batches([{"a": 0.0, "b": 1.0}, {"b": 0.0, "c": 1.0}])
    assert merged.scores == pytest.approx({"a": 0.0, "b": 0.5, "c": 1.0})


def test_batches_that_share_nobody_have_no_common_scale():
    assert isinstance(merge_batches([{"a": 0.1}, {"b": 0.2}]), Unmergeable)
    assert isinstance(merge_batches([{"a": 0.1}, {}]), Unmergeable)
    assert isinstance(merge_batches([]), Unmergeable)


@pytest.mark.parametrize("size", [5, 8, 9, 14, 15, 40])
async def test_a_group_of_any_size_is_judged_in_the_true_order(size):
    truth = [body(round((n + 1) / (size + 2), 3)) for n in range(size)]
    verdict = await judged(group(*truth), MoodyJudge())
    assert verdict.judged
    assert sorted(verdict.scores, key=verdict.scores.get) == [
        each["trajectory_id"] for each in truth
    ]


class MoodyJudge(ObedientJudge):
    """Milder with every question."""

    async def __call__(self, messages, response_format):
        from judge_doubles import Reading, Said, answer

        self.prompts.append(messages)
        reading = Reading(messages)
        mood = 0.02 * len(self.prompts)
        return Said(
            answer({label: 0.8 * reading.quality(label) + mood for label in reading.labels})
        )
