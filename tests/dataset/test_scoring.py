"""Single attempts: each has its own source, and is compared with nobody whom another source scores."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dataset.data_cases import candidate

from upswing.dataset.filtering import SelectionSpec
from upswing.dataset.scoring import PRECEDENCE, ScoreSource, single_scores
from upswing.dataset.select import select
from upswing.train.learn.advantages import compute_advantages

FIELDS = {
    ScoreSource.VERIFIED: "verified",
    ScoreSource.JUDGE: "judged",
    ScoreSource.REPORTED: "reported",
    ScoreSource.FEEDBACK: "feedback",
}
SILENT = dict.fromkeys(FIELDS.values())
score = st.sampled_from([0.0, 0.25, 0.5, 1.0])
maybe_score = st.one_of(st.none(), score)
outcomes = st.fixed_dictionaries(dict.fromkeys(FIELDS.values(), maybe_score))


def singles(first, rows, **changes):
    """One attempt each at tasks of their own."""
    return [
        candidate(n, task_id=f"task-{n}", scenario_id=f"task-{n}", **row, **changes)
        for n, row in enumerate(rows, first)
    ]


def by_source(source):
    """Attempts of which this source is the best that says anything."""
    worse = PRECEDENCE[PRECEDENCE.index(source) + 1 :]
    known = {FIELDS[each]: maybe_score for each in worse}
    return st.fixed_dictionaries({FIELDS[source]: score, **known}).map(lambda row: SILENT | row)


@given(st.lists(outcomes, max_size=20), st.lists(outcomes, max_size=60))
def test_what_is_said_of_others_changes_no_score(rows, others):
    mine = singles(0, rows)
    alone = single_scores(mine)
    beside = single_scores([*singles(1000, others), *mine])
    assert {each.trajectory_id: beside.get(each.trajectory_id) for each in mine} == {
        each.trajectory_id: alone.get(each.trajectory_id) for each in mine
    }


@given(st.lists(outcomes, max_size=20))
def test_the_best_source_of_each_attempt_scores_it(rows):
    found = single_scores(singles(0, rows))
    for attempt, row in zip(singles(0, rows), rows, strict=True):
        spoken = [source for source in PRECEDENCE if row[FIELDS[source]] is not None]
        one = found.get(attempt.trajectory_id)
        assert (one.source, one.score) == (spoken[0], row[FIELDS[spoken[0]]]) if spoken else not one


def reinforce_advantages(people):
    """Trajectory → how much better it was than what it is compared with; as a job gets it."""
    chosen = select(people, SelectionSpec("reinforce", 10_000))
    names = [each.trajectory_id for each in chosen.members]
    found = compute_advantages(
        [chosen.scores[name] for name in names],
        [chosen.groups[name] for name in names],
        algorithm="reinforce",
        scale="none",
        min_spread=0.02,
        domains=[f"{each.domain}/{chosen.scales[each.trajectory_id]}" for each in chosen.members],
    )
    return dict(zip(names, found.values, strict=True))


@given(
    st.permutations(PRECEDENCE).flatmap(
        lambda order: st.tuples(
            st.lists(by_source(order[0]), max_size=20),
            st.lists(st.one_of(*map(by_source, order[1:])), max_size=80),
        )
    ),
    st.booleans(),
)
def test_a_majority_of_other_sources_moves_no_advantage(both, same_task):
    """Neither where each stands alone in its domain nor where all are attempts at one task."""
    mine, others = both
    task = {"task_id": "one", "scenario_id": "one"} if same_task else {}
    made = [
        [candidate(n, **({"task_id": f"t{n}", "scenario_id": f"t{n}"} | task), **row)]
        for n, row in enumerate([*mine, *others])
    ]
    people = [each for some in made for each in some]
    alone = reinforce_advantages(people[: len(mine)])
    beside = reinforce_advantages(people)
    assert {name: beside[name] for name in alone} == pytest.approx(alone)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20), st.lists(score, max_size=20))
def test_ranks_by_profit_are_among_those_without_a_verified_outcome(profits, verified):
    traders = singles(0, [SILENT | {"pnl": pnl} for pnl in profits])
    checked = singles(100, [SILENT | {"verified": value, "pnl": 1.0} for value in verified])
    found = single_scores([*checked, *traders])
    assert {found[each.trajectory_id].scale for each in traders} == {"pnl"}
    assert [found[each.trajectory_id] for each in traders] == list(single_scores(traders).values())
    assert all(found[each.trajectory_id].scale == "verified" for each in checked)
