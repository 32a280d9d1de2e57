"""Which trajectories: never the forbidden ones, whole groups, fair shares, unseen first, seeded."""

import random
from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dataset.data_cases import NOON, candidate, candidates, crowd

from upswing.dataset.balance import DomainBalance
from upswing.dataset.filtering import (
    UNRELATED_AGE,
    ExclusionReason,
    SelectionSpec,
    describe_exclusions,
)
from upswing.dataset.groups import count_learnable, split_into_groups
from upswing.dataset.select import GROUPED, select
from upswing.dataset.split import is_held_out

ALGORITHMS = ("grpo", "rloo", "dpo", "ppo", "reinforce")
AGES = {"v2": 0, "v1": 1, "tiny": 2}
PROFILE = DomainBalance({"coding": 0.4, "general": 0.3, "research": 0.3})
wishes = st.builds(
    SelectionSpec,
    algorithm=st.sampled_from(ALGORITHMS),
    sample_size=st.integers(1, 60),
    seed=st.integers(0, 3),
    holdout=st.sampled_from([0.0, 0.2, 0.5]),
    min_agents=st.integers(1, 5),
    min_attempts=st.integers(2, 5),
    policy_ages=st.sampled_from([{}, AGES]),
    max_age=st.integers(0, 3),
    stale_before=st.none() | st.integers(0, 400).map(lambda n: NOON + timedelta(minutes=n)),
    fill_up_to=st.none() | st.integers(1, 60),
    balance=st.sampled_from([DomainBalance(), DomainBalance(even=True), PROFILE]),
    max_groups=st.sampled_from([None, 1, 3]),
)


def names(selection):
    return [each.trajectory_id for each in selection.members]


# ── who may be in it ─────────────────────────────────────────────────────────────────────────────


@given(candidates, wishes)
def test_what_must_not_be_trained_on_never_is(given_candidates, spec):
    for member in select(given_candidates, spec).members:
        assert not any([member.opted_out, member.infra_error, member.evaluation])
        assert member.reward in {0.1, 0.5, 0.9}
        if spec.policy_ages:
            age = spec.policy_ages.get(member.model, 0)
            assert age <= spec.max_age
            assert not age or spec.stale_before is None or member.ended >= spec.stale_before


@given(candidates, wishes)
def test_everybody_is_taken_or_left_out_for_a_reason(given_candidates, spec):
    selection = select(given_candidates, spec)
    assert len(selection.members) + sum(selection.left_out.values()) == len(given_candidates)
    assert len(set(names(selection))) == len(selection.members) <= spec.sample_size


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"opted_out": True, "evaluation": True}, ExclusionReason.OPTED_OUT),
        ({"infra_error": True}, ExclusionReason.INFRA_ERROR),
        ({"evaluation": True}, ExclusionReason.EVALUATION),
        ({"reward": None}, ExclusionReason.NO_REWARD),
        ({"reward": float("nan")}, ExclusionReason.NO_REWARD),
        ({"ended": NOON - timedelta(seconds=1)}, ExclusionReason.DATE),
        ({"ended": NOON + timedelta(days=2)}, ExclusionReason.DATE),
        ({"domain": "writing"}, ExclusionReason.DOMAIN),
        ({"turns": 11}, ExclusionReason.LENGTH),
        ({"profile": "hacker"}, ExclusionReason.PROFILE),
        ({"trajectory_id": "bad"}, ExclusionReason.FOUND_BAD),
    ],
)
def test_each_reason_is_counted_by_its_name(changes, reason):
    spec = SelectionSpec(
        "ppo",
        10,
        start=NOON,
        end=NOON + timedelta(days=1),
        domains=["coding", "research"],
        max_turns=10,
        excluded_profiles=["hacker"],
        excluded_ids=["bad"],
    )
    selection = select([candidate(1), candidate(2, **changes)], spec)
    assert names(selection) == ["t00001"]
    assert selection.left_out == {reason: 1}


def test_both_ends_of_the_dates_belong_to_them():
    spec = SelectionSpec("ppo", 10, start=NOON, end=NOON + timedelta(minutes=3))
    assert len(select(crowd(8), spec).members) == 4


# ── groups ───────────────────────────────────────────────────────────────────────────────────────


@given(candidates, wishes.filter(lambda spec: spec.algorithm in {"grpo", "rloo"}))
def test_a_group_is_large_enough_and_has_one_source(given_candidates, spec):
    selection = select(given_candidates, spec)
    by_group = {}
    for each in selection.members:
        by_group.setdefault(selection.groups[each.trajectory_id], []).append(each)
    for members in by_group.values():
        assert len({each.group for each in members}) == 1
        if not members[0].continuous:
            assert len(members) >= spec.min_attempts
            assert len({(each.task, each.model) for each in members}) == 1
        sources = [
            {
                name
                for name in ("verified", "judged", "reported", "feedback")
                if getattr(each, name) == selection.scores[each.trajectory_id]
            }
            | ({"pnl"} if each.verified is None and each.pnl is not None else set())
            for each in members
        ]
        assert set.intersection(*sources), "every score of a group comes from one source"
        held = selection.is_held_out(members[0])
        if not held:
            assert len({selection.scores[each.trajectory_id] for each in members}) > 1


def test_groups_are_taken_until_no_further_one_fits():
    selection = select(crowd(80), SelectionSpec("grpo", 30))
    assert len(selection.members) == 24
    assert selection.left_out == {ExclusionReason.SURPLUS: 56}


def test_one_agent_that_tries_again_makes_a_group_except_in_a_continuous_world():
    assert len(select(crowd(40, agent_id="one"), SelectionSpec("grpo", 100)).members) == 40
    world = crowd(40, agent_id="one", continuous=True)
    assert not select(world, SelectionSpec("grpo", 100)).members
    assert len(select(crowd(40, continuous=True), SelectionSpec("grpo", 100)).members) == 40


def test_attempts_of_two_policies_are_two_groups():
    people = crowd(8, model=lambda n: "v1" if n < 4 else "v2", task_id="same")
    assert len(set(select(people, SelectionSpec("grpo", 100)).groups.values())) == 2
    assert not select(people, SelectionSpec("grpo", 100, min_attempts=5)).members


def test_a_task_that_is_tried_very_often_makes_several_groups():
    people = crowd(100, task_id="same")
    sizes = Counter(select(people, SelectionSpec("grpo", 100)).groups.values())
    assert sum(sizes.values()) == 100
    assert set(sizes.values()) <= {14, 15}
    assert len(select(people, SelectionSpec("grpo", 50)).members) >= 36, "a part of it can be taken"


def test_pairs_for_dpo_come_from_attempts_at_the_same_task():
    alone = [candidate(n, scenario_id=f"own-{n}", task_id="same") for n in (33, 40)]
    lonely = candidate(17, scenario_id="own-17", task_id="other")
    together = crowd(2, scenario_id="s", task_id="t")
    selection = select([*together, *alone, lonely], SelectionSpec("dpo", 100))
    assert sorted(names(selection)) == ["t00000", "t00001", "t00033", "t00040"]
    assert selection.left_out == {ExclusionReason.SMALL_GROUP: 1}


# ── whose word counts ────────────────────────────────────────────────────────────────────────────


def test_latency_and_silence_decide_nothing_inside_a_group():
    """Totals say the opposite of the outcome; the outcome is what is learned from."""
    people = crowd(8, reward=lambda n: 0.9 - 0.1 * n, verified=lambda n: float(n > 5))
    selection = select(people, SelectionSpec("grpo", 100))
    assert [selection.scores[f"t{n:05d}"] for n in range(8)] == [0, 0, 0, 0, 0, 0, 1, 1]
    assert selection.sources == {"verified": 1}


@pytest.mark.parametrize(
    ("said", "source"),
    [
        ({"verified": 1.0, "judged": 0.0, "reported": 0.0, "feedback": 0.0}, "verified"),
        ({"judged": 1.0, "reported": 0.0, "feedback": 0.0}, "judge"),
        ({"reported": 1.0, "feedback": 0.0}, "reported"),
        ({"feedback": 1.0}, "feedback"),
    ],
)
def test_the_best_source_that_all_have_scores_the_group(said, source):
    nothing = dict.fromkeys(("verified", "judged", "reported", "feedback"))
    people = [
        candidate(n, **nothing | {k: v if n % 2 else 1 - v for k, v in said.items()})
        for n in range(8)
    ]
    assert select(people, SelectionSpec("grpo", 100)).sources == {source: 1}
    missing = [*people[:-1], replace(people[-1], **{k: None for k in said if len(said) > 1})]
    assert len(select(missing, SelectionSpec("grpo", 100)).sources) <= 1, "never two in one group"


def test_flat_groups_and_groups_without_a_word_do_not_train():
    flat = crowd(8, verified=1.0)
    silent = crowd(16, verified=None)[8:]
    selection = select([*flat, *silent], SelectionSpec("grpo", 100))
    assert not selection.members
    assert selection.left_out == {ExclusionReason.FLAT: 8, ExclusionReason.NO_OUTCOME: 8}


def test_imitation_takes_successes_and_the_agents_own_word_only_when_configured():
    people = crowd(8, verified=None, reported=lambda n: float(n % 2))
    assert not select(people, SelectionSpec("rft", 100)).members
    assert len(select(people, SelectionSpec("rft", 100, self_reported=True)).members) == 4
    assert len(select(crowd(8), SelectionSpec("rft", 100)).members) == 4


said = st.sampled_from([None, None, 0.0, 0.5, 1.0])
single_attempts = st.lists(
    st.tuples(said, said, said, said, st.sampled_from(["coding", "general"])), max_size=60
)


@given(single_attempts)
def test_what_counts_as_told_is_what_single_attempts_are_selected_by(told):
    """Of whatever anything is said, that is learned from: no source silences another."""
    names = ("verified", "judged", "reported", "feedback", "domain")
    people = [candidate(n, **dict(zip(names, row, strict=True))) for n, row in enumerate(told)]
    there = count_learnable(people)
    selection = select(people, SelectionSpec("reinforce", 1000))
    assert len(selection.members) == there.with_outcome
    stated = [row for row in told if any(each is not None for each in row[:4])]
    assert there.with_outcome == len(stated)
    assert len(select(people, SelectionSpec("rft", 1000)).members) == there.successes


def test_kto_learns_from_thumbs_however_few_they_are():
    people = crowd(80, feedback=lambda n: float(n % 2) if n < 40 else None, verified=1.0)
    selection = select(people, SelectionSpec("kto", 100))
    assert set(selection.scores.values()) == {0.0, 1.0}
    assert len(selection.members) == 40


def test_kto_learns_from_thumbs_before_anything_else():
    people = crowd(8, feedback=lambda n: float(n % 2), verified=lambda n: float(n < 4))
    selection = select(people, SelectionSpec("kto", 100))
    assert [selection.scores[f"t{n:05d}"] for n in range(8)] == [0, 1, 0, 1, 0, 1, 0, 1]


tasks_and_spreads = st.lists(
    st.tuples(
        st.sampled_from([f"k{n}" for n in range(60)]),
        st.booleans(),
        st.sampled_from(["tiny", "v1"]),
    ),
    max_size=6,
)


@given(
    tasks_and_spreads,
    st.sampled_from([0.1, 0.3, 0.5]),
    st.sampled_from(sorted(GROUPED)),
    st.sampled_from([None, 1, 2]),
)
def test_where_a_group_teaches_something_it_is_not_held_out_or_crowded_out_by_flat_ones(
    given_groups, share, algorithm, most
):
    people = [
        candidate(4 * n + m, task_id=task, model=model, verified=float(m % 2 if varied else 1))
        for n, (task, varied, model) in enumerate(given_groups)
        for m in range(4)
    ]
    selection = select(people, SelectionSpec(algorithm, 1000, holdout=share, max_groups=most))
    trained = [each for each in selection.members if not selection.is_held_out(each)]
    assert bool(trained) == bool(count_learnable(people).usable)
    assert (
        not any(is_held_out(each.task, share) for each in trained)
        or len({e.task for e in trained}) == 1
    )


# ── the current policy first, the newest first ───────────────────────────────────────────────────


def test_the_policy_that_training_starts_from_comes_first_and_its_newest_first():
    people = crowd(320, model=lambda n: ("tiny", "v1", "v2")[n // 8 % 3])
    selection = select(people, SelectionSpec("grpo", 64, policy_ages=AGES))
    assert {each.model for each in selection.members} == {"v2"}
    newest = sorted((p.ended for p in people if p.model == "v2"), reverse=True)[:64]
    assert sorted((each.ended for each in selection.members), reverse=True) == newest


def test_older_policies_only_fill_up_and_only_as_far_back_as_may_be():
    people = crowd(240, model=lambda n: ("tiny", "v1", "v2")[min(2, n // 8 % 6)])
    of = lambda **more: Counter(  # noqa: E731
        each.model
        for each in select(people, SelectionSpec("grpo", 1000, policy_ages=AGES, **more)).members
    )
    assert of(fill_up_to=100) == {"v2": 160}, "enough of its own"
    assert of(fill_up_to=180) == {"v2": 160, "v1": 24}
    assert of() == {"v2": 160, "v1": 40, "tiny": 40}, "whoever names a size gets it"
    assert of(max_age=1) == {"v2": 160, "v1": 40}
    late = NOON + timedelta(minutes=120)
    assert of(stale_before=late) == {"v2": 160, "v1": 16, "tiny": 16}, "its own stay, however old"


def test_in_a_window_the_newest_policys_agents_are_compared_alone_where_they_are_enough():
    window = crowd(8, continuous=True, scenario_id="s", model=lambda n: "v1" if n < 2 else "v2")
    alone = select(window, SelectionSpec("grpo", 100, policy_ages=AGES))
    assert {each.model for each in alone.members} == {"v2"}
    assert alone.left_out == {ExclusionReason.STALE: 2}
    few = crowd(8, continuous=True, scenario_id="s", model=lambda n: "v1" if n < 4 else "v2")
    assert len(select(few, SelectionSpec("grpo", 100, policy_ages=AGES)).members) == 8


def test_a_canarys_attempts_are_left_out_as_such_and_not_as_stale():
    people = crowd(48, model=lambda n: ("tiny", "v1", "v2", "canary")[n // 8 % 4])
    ages = {**AGES, "canary": UNRELATED_AGE}
    found = select(people, SelectionSpec("grpo", 1000, policy_ages=ages, max_age=1)).left_out
    of = Counter(each.model for each in people)
    assert found[ExclusionReason.OTHER_MODEL] == of["canary"] > 0
    assert found[ExclusionReason.STALE] == of["tiny"] > 0
    assert f"{of['canary']} of models that are no ancestors" in describe_exclusions(found)


def test_the_size_of_a_job_follows_from_what_is_new_and_not_from_history():
    """Ten cycles of 800 episodes: the tenth job is as large as the second."""
    people, sizes = [], []
    for cycle in range(10):
        people += [
            replace(candidate(n), model=f"v{cycle}") for n in range(800 * cycle, 800 * (cycle + 1))
        ]
        ages = {f"v{n}": cycle - n for n in range(cycle + 1)}
        sizes.append(
            len(
                select(
                    people, SelectionSpec("grpo", 10_000, policy_ages=ages, fill_up_to=256)
                ).members
            )
        )
    assert sizes == [800] * 10


def test_a_sample_smaller_than_every_group_says_so():
    selection = select(crowd(80), SelectionSpec("grpo", 5))
    assert not selection.members
    assert "The smallest group has 8 trajectories: it does not fit into 5." in selection.notes


def test_groups_that_training_never_comes_to_are_not_taken():
    selection = select(crowd(800), SelectionSpec("grpo", 10_000, holdout=0.2, max_groups=20))
    training = {each.group for each in selection.members if not selection.is_held_out(each)}
    assert 15 <= len(training) <= 20
    assert selection.left_out[ExclusionReason.SURPLUS] == 800 - len(selection.members)
    assert selection.held_out


# ── balance ──────────────────────────────────────────────────────────────────────────────────────


def three(n):
    return ("coding", "general", "research")[n // 8 % 3]


@pytest.mark.parametrize(
    ("algorithm", "unit"), [("ppo", 1), ("reinforce", 1), ("grpo", 8), ("dpo", 8)]
)
def test_given_shares_are_met_within_one_unit(algorithm, unit):
    selection = select(crowd(2400, domain=three), SelectionSpec(algorithm, 1000, balance=PROFILE))
    counts = Counter(each.domain for each in selection.members)
    for domain, share in PROFILE.shares.items():
        assert 0 <= share * 1000 - counts[domain] < unit
    assert not any("asks for" in note for note in selection.notes)


@given(
    st.dictionaries(
        st.sampled_from(["coding", "general", "research"]), st.integers(1, 12), min_size=1
    ),
    st.integers(8, 300),
    st.booleans(),
    st.booleans(),
)
def test_shares_are_met_within_one_unit_whenever_there_is_enough(groups, size, even, grouped):
    people = []
    for domain, count in groups.items():
        for _ in range(count * 8):
            people.append(candidate(len(people), domain=domain))
    spec = SelectionSpec(
        "grpo" if grouped else "ppo", size, balance=DomainBalance(even=True) if even else PROFILE
    )
    selection = select(people, spec)
    counts = Counter(each.domain for each in selection.members)
    total = min(size, len(people))
    shares = dict.fromkeys(groups, 1 / len(groups)) if even else PROFILE.shares
    for domain, share in shares.items():
        have = 8 * groups.get(domain, 0)
        unit = 8 if grouped else 1
        assert counts[domain] <= min(have, share * total + 1)
        if have >= share * total + 1:
            assert counts[domain] > share * total - 1 - unit
        elif have < share * total - 1:
            assert any(note.startswith(f"{domain} has {have} of") for note in selection.notes)


def test_a_domain_with_too_few_gives_what_it_has_and_no_more():
    people = crowd(
        800, domain=lambda n: "research" if n < 8 else "coding" if n < 400 else "general"
    )
    selection = select(people, SelectionSpec("ppo", 100, balance=PROFILE))
    counts = Counter(each.domain for each in selection.members)
    assert counts == {"coding": 40, "general": 30, "research": 8}
    assert "research has 8 of the 30 that its share asks for." in selection.notes


# ── reuse, chance and the split ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_what_ancestors_have_seen_fills_up_only_when_needed(algorithm):
    people = crowd(160, seen=lambda n: n < 80)
    enough = select(people, SelectionSpec(algorithm, 80)).members
    assert not any(each.seen for each in enough)
    more = select(people, SelectionSpec(algorithm, 120)).members
    assert sum(each.seen for each in more) == 40


@given(candidates, wishes, st.randoms())
def test_the_same_seed_selects_the_same_whatever_the_order(given_candidates, spec, chance):
    shuffled = chance.sample(given_candidates, len(given_candidates))
    assert select(given_candidates, spec) == select(shuffled, spec)


def test_among_equally_new_ones_chance_decides():
    people = crowd(400, ended=NOON)
    chosen = {
        tuple(names(select(people, SelectionSpec("ppo", 20, seed=seed)))) for seed in range(9)
    }
    assert len(chosen) == 9


@given(candidates, wishes)
def test_tasks_are_trained_on_or_held_out_and_never_both(given_candidates, spec):
    selection = select(given_candidates, spec)
    sides = {True: set(), False: set()}
    for member in selection.members:
        sides[selection.is_held_out(member)].add(member.task)
    assert not sides[True] & sides[False]
    assert not selection.members or sides[False], "something is always trained on"


@given(candidates, wishes.filter(lambda spec: spec.algorithm in GROUPED))
def test_a_group_is_held_out_whole(given_candidates, spec):
    selection = select(given_candidates, spec)
    sides = {}
    for member in selection.members:
        group = selection.groups[member.trajectory_id]
        held = selection.is_held_out(member)
        assert sides.setdefault(group, held) == held


def test_twenty_thousand_candidates_are_no_trouble():
    people = crowd(20_000, domain=three, seen=lambda n: n % 3 == 0)
    for algorithm in ("grpo", "ppo"):
        selection = select(people, SelectionSpec(algorithm, 5000, holdout=0.1, balance=PROFILE))
        assert 4950 < len(selection.members) <= 5000


# ── whose claims ─────────────────────────────────────────────────────────────────────────────────

SOURCES = ("verified", "judged", "reported", "feedback")


def attempts(task, key, source, count):
    """Attempts of one key of which every second went well, by the word of one source."""
    silent = dict.fromkeys(SOURCES)
    return [
        candidate(
            trajectory_id=f"{key}-{task}-{n}",
            agent_id=key,
            task_id=f"task-{task}",
            key_id="" if key == "trusted" else key,
            answers=str(n),
            **silent | {source: float(n % 2)},
        )
        for n in range(count)
    ]


@pytest.mark.parametrize("claim", SOURCES)
@pytest.mark.parametrize("honest", SOURCES)
@pytest.mark.parametrize("keys", [("trusted",), ("k1",), ("k1", "k2", "k3")])
@pytest.mark.parametrize("count", [4, 40])
def test_one_keys_claims_of_another_source_leave_out_nobody_else(claim, honest, keys, count):
    spec = SelectionSpec(algorithm="grpo", sample_size=10_000, holdout=0.0)
    theirs = [each for task in range(5) for key in keys for each in attempts(task, key, honest, 12)]
    loud = [each for task in range(5) for each in attempts(task, "loud", claim, count)]
    alone = set(names(select(theirs, spec)))
    assert len(alone) == len(theirs)
    assert alone <= set(names(select([*theirs, *loud], spec)))


def test_the_name_of_a_group_says_who_reports_on_it_or_that_nobody_does():
    silent = [replace(each, reported=None) for each in attempts(0, "k2", "reported", 4)]
    people = [*attempts(0, "k1", "verified", 12), *attempts(0, "k3", "feedback", 4), *silent]
    made = dict(split_into_groups(people))
    told = {name.partition(" (")[2] for name in made}
    assert told == {"", "feedback)", "nobody reports on all)"}


@pytest.mark.parametrize("algorithm", ["grpo", "reinforce"])
@pytest.mark.parametrize("seed", range(5))
def test_what_is_held_out_is_trained_on_under_no_other_name(algorithm, seed):
    """Questions under many names each: a question is on one side, whatever it is called."""
    spec = SelectionSpec(algorithm=algorithm, sample_size=10_000, holdout=0.1)
    questions = random.Random(seed).choices(range(40), k=80)
    made = [
        replace(each, request=f"q{question}")
        for task, question in enumerate(questions)
        for each in attempts(task, "k1", "verified", 4)
    ]
    chosen = select(made, spec)
    held = {each.request for each in chosen.members if chosen.is_held_out(each)}
    trained = {each.request for each in chosen.members if not chosen.is_held_out(each)}
    assert held
    assert trained
    assert not held & trained


def test_one_question_alone_is_still_trained_on():
    spec = SelectionSpec(algorithm="grpo", sample_size=10_000, holdout=0.1)
    made = [
        replace(each, request="q")
        for task in range(40)
        for each in attempts(task, "k1", "verified", 4)
    ]
    chosen = select(made, spec)
    assert any(not chosen.is_held_out(each) for each in chosen.members)
