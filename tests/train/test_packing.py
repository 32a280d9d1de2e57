"""Packs: what is shared is computed once, and everything finds its way back."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from upswing.train.learn.attention import plan_tree_attention
from upswing.train.learn.example import Example
from upswing.train.learn.packing import TokenPack, build_packs

ROOMY = 10_000


def example(
    ids: Sequence[int],
    trained: Sequence[int] | None = None,
    turns: Sequence[int] | None = None,
) -> Example:
    """`trained` are indices; without any, all but the first token train."""
    at = set(range(1, len(ids)) if trained is None else trained)
    return Example(
        trajectory_id="t",
        group="g",
        task="k",
        ids=tuple(ids),
        trained=tuple(index in at for index in range(len(ids))),
        turns=tuple(turns) if turns is not None else (0,) * len(ids),
        logps=None,
        exact=False,
        reward=0.0,
    )


@st.composite
def families(draw: st.DrawFn) -> list[Example]:
    """Sequences that branch off one another anywhere, with any tokens trained."""
    found: list[tuple[int, ...]] = []
    for _ in range(draw(st.integers(1, 7))):
        base = draw(st.sampled_from(found)) if found and draw(st.booleans()) else ()
        kept = base[: draw(st.integers(0, len(base)))]
        found.append(kept + tuple(draw(st.lists(st.integers(0, 5), max_size=8))))
    return [
        example(ids, [at for at in range(1, len(ids)) if draw(st.booleans())], _turns(draw, ids))
        for ids in found
    ]


def _turns(draw: st.DrawFn, ids: Sequence[int]) -> list[int]:
    turn, turns = 0, []
    for _ in ids:
        turn += draw(st.integers(0, 3)) // 3
        turns.append(turn)
    return turns


def needed(one: Example) -> tuple[int, ...]:
    return one.ids[: max((at for at, trained in enumerate(one.trained) if trained), default=0)]


def prefixes(examples: Sequence[Example]) -> set[tuple[int, ...]]:
    return {needed(one)[: end + 1] for one in examples for end in range(len(needed(one)))}


def members(pack: TokenPack, examples: Sequence[Example]) -> list[Example]:
    return [examples[index] for index in pack.examples]


def prefix_of_nodes(pack: TokenPack) -> list[tuple[int, ...]]:
    """What each node stands for, read from its mask."""
    ids_N = pack.ids_N.tolist()
    return [tuple(ids_N[at] for at in row.nonzero()[:, 0].tolist()) for row in pack.mask_NN]


@settings(max_examples=40, deadline=None)
@given(families(), st.integers(1, 40))
def test_every_distinct_prefix_of_a_pack_is_one_node_at_its_depth(examples, micro_tokens):
    for pack in build_packs(examples, micro_tokens=micro_tokens):
        found = prefix_of_nodes(pack)
        assert sorted(found) == sorted(prefixes(members(pack, examples)))
        assert [len(prefix) - 1 for prefix in found] == pack.positions_N.tolist()


@settings(max_examples=40, deadline=None)
@given(families(), st.integers(1, 40))
def test_every_trained_token_is_predicted_by_what_comes_before_it(examples, micro_tokens):
    for pack in build_packs(examples, micro_tokens=micro_tokens):
        found = prefix_of_nodes(pack)
        for row, one in enumerate(members(pack, examples)):
            trained = [at for at, yes in enumerate(one.trained) if yes]
            assert pack.mask_BT[row].tolist()[: len(trained)] == [1.0] * len(trained)
            assert pack.mask_BT[row].sum() == len(trained)
            for column, at in enumerate(trained):
                entry = pack.entry_BT[row, column]
                node = int(pack.nodes_M[pack.at_E[entry]])
                assert found[node] == one.ids[:at]
                assert int(pack.tokens_E[entry]) == one.ids[at]


@settings(max_examples=40, deadline=None)
@given(families(), st.integers(1, 40))
def test_a_turn_is_valued_just_before_its_first_trained_token(examples, micro_tokens):
    for pack in build_packs(examples, micro_tokens=micro_tokens):
        found = prefix_of_nodes(pack)
        for row, one in enumerate(members(pack, examples)):
            trained = [at for at, yes in enumerate(one.trained) if yes]
            acting = list(dict.fromkeys(one.turns[at] for at in trained))
            assert pack.turn_mask_BK[row].sum() == len(acting)
            for column, turn in enumerate(acting):
                first = next(at for at in trained if one.turns[at] == turn)
                assert found[int(pack.turn_nodes_BK[row, column])] == one.ids[:first]
            told = [acting[int(each)] for each in pack.turn_BT[row, : len(trained)]]
            assert told == [one.turns[at] for at in trained]


@settings(max_examples=40, deadline=None)
@given(families(), st.integers(1, 40), st.sampled_from([-1000, 0, 10, 2048]))
def test_the_blocks_show_each_node_exactly_its_ancestors(examples, micro_tokens, call_cost):
    # from a block for each run to one for all
    found = build_packs(examples, micro_tokens=micro_tokens, call_cost_pairs=call_cost)
    for pack in found:
        seen_NN = torch.zeros_like(pack.mask_NN)
        for block, mask in zip(pack.blocks, plan_tree_attention(pack).masks, strict=True):
            own = list(range(block.start, block.stop))
            starts = [(pack.blocks[at].start, low, high) for at, low, high in block.before]
            keys = [key for at, low, high in starts for key in range(at + low, at + high)] + own
            causal = torch.ones(len(own), len(own), dtype=torch.bool).tril()
            for query, row in zip(own, causal if mask is None else mask[0, 0], strict=True):
                seen_NN[query, keys] = row
        assert torch.equal(seen_NN, pack.mask_NN)
        assert [b.start for b in pack.blocks[1:]] == [b.stop for b in pack.blocks[:-1]]


@settings(max_examples=40, deadline=None)
@given(families(), st.integers(1, 40))
def test_every_example_is_in_one_pack_and_no_pack_is_too_large(examples, micro_tokens):
    found = build_packs(examples, micro_tokens=micro_tokens)
    assert sorted(index for pack in found for index in pack.examples) == list(range(len(examples)))
    for pack in found:
        longest = max(len(needed(one)) for one in members(pack, examples))
        assert len(pack.ids_N) <= max(micro_tokens, longest)


@settings(max_examples=40, deadline=None)
@given(families(), st.integers(1, 40), st.randoms(use_true_random=False))
def test_clusters_stay_together(examples, micro_tokens, chance):
    order = list(range(len(examples)))
    chance.shuffle(order)
    clusters = [order[at : at + 2] for at in range(0, len(order), 2)]
    found = build_packs(examples, micro_tokens=micro_tokens, keep_together=clusters)
    assert sorted(index for pack in found for index in pack.examples) == list(range(len(examples)))
    for cluster in clusters:
        assert sum(set(cluster) <= set(pack.examples) for pack in found) == 1
    for pack in found:
        largest = max(
            len(prefixes([examples[at] for at in cluster]))
            for cluster in clusters
            if cluster[0] in pack.examples
        )
        assert len(pack.ids_N) <= max(micro_tokens, largest)


@settings(max_examples=20, deadline=None)
@given(families(), st.integers(1, 40))
def test_the_same_examples_are_packed_the_same_way(examples, micro_tokens):
    one, other = (build_packs(examples, micro_tokens=micro_tokens) for _ in range(2))
    assert [pack.examples for pack in one] == [pack.examples for pack in other]
    assert all(torch.equal(a.ids_N, b.ids_N) for a, b in zip(one, other, strict=True))


def group(prompt: Sequence[int], count: int, length: int = 4) -> list[Example]:
    """So many answers to one prompt, no two beginning alike."""
    return [
        example([*prompt, *[1000 + answer] * length], range(len(prompt), len(prompt) + length))
        for answer in range(count)
    ]


def test_a_group_that_does_not_fit_computes_its_prompt_once_in_each_pack():
    found = build_packs(group(range(50), 12), micro_tokens=65)
    assert [len(pack.ids_N) for pack in found] == [65, 65, 56]
    assert [len(pack.examples) for pack in found] == [5, 5, 2]


def test_a_group_that_fits_alone_is_not_torn_apart_to_fill_the_pack_before():
    apart = [one for start in (0, 100) for one in group(range(start, start + 50), 8)]
    found = build_packs(apart, micro_tokens=110)
    assert [pack.examples for pack in found] == [tuple(range(8)), tuple(range(8, 16))]


def test_groups_that_were_shuffled_are_found_again():
    mixed = [
        one
        for pair in zip(group(range(50), 6), group(range(9, 59), 6), strict=True)
        for one in pair
    ]
    found = build_packs(mixed, micro_tokens=80)
    assert [pack.examples for pack in found] == [(0, 2, 4, 6, 8, 10), (1, 3, 5, 7, 9, 11)]


def test_what_nothing_is_predicted_from_is_not_computed():
    (pack,) = build_packs([example([1, 2, 3, 4, 5, 6], [2, 3])], micro_tokens=ROOMY)
    assert pack.ids_N.tolist() == [1, 2, 3]
    assert pack.nodes_M.tolist() == [1, 2]
    assert pack.tokens_E.tolist() == [3, 4]


def test_identical_examples_share_all_and_keep_a_row_each():
    (pack,) = build_packs([example([1, 2, 3]), example([1, 2, 3])], micro_tokens=ROOMY)
    assert len(pack.ids_N) == 2
    assert pack.entry_BT.tolist() == [[0, 1], [0, 1]]


def test_an_example_without_trained_tokens_has_an_empty_row():
    (pack,) = build_packs([example([1, 2, 3], []), example([1, 2, 3])], micro_tokens=ROOMY)
    assert pack.mask_BT.tolist() == [[0.0, 0.0], [1.0, 1.0]]


def test_no_examples_make_no_packs():
    assert build_packs([], micro_tokens=ROOMY) == []


def test_a_trained_first_token_is_refused():
    with pytest.raises(ValueError, match="Example 1 trains its first token"):
        build_packs([example([1, 2]), example([1, 2], [0, 1])], micro_tokens=ROOMY)


def test_an_example_whose_parts_differ_in_length_is_refused():
    with pytest.raises(ValueError, match="differ in length"):
        build_packs([example([1, 2, 3], turns=[0, 0])], micro_tokens=ROOMY)


@pytest.mark.parametrize("together", [[(0, 1), (1, 2)], [(0, 3)], [(-1, 0)]])
def test_clusters_that_cannot_be_kept_are_refused(together):
    with pytest.raises(ValueError):
        build_packs([example([1, 2])] * 3, micro_tokens=ROOMY, keep_together=together)


def test_a_pack_moves_to_a_device_with_all_it_holds():
    (pack,) = build_packs(group([1, 2], 3), micro_tokens=ROOMY)
    moved = pack.to("meta")
    assert moved.ids_N.device.type == moved.turn_mask_BK.device.type == "meta"
    assert moved.examples == pack.examples
