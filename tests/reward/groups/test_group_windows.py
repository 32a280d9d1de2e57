"""Windows: who acted together, what came of it, and is it enough?"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upswing.dataset.scoring import group_scores
from upswing.reward.core.windows import (
    MOST,
    EnvironmentNumbers,
    Member,
    environment_numbers,
    render_windows,
    report_windows,
    window_readiness,
    windows_json,
)

GUIDE = {"agent-1": 500.0, "agent-2": -200.0, "agent-3": 100.0, "agent-4": -50.0, "agent-5": 800.0}


def member(agent, *, window="2025-01-15T10:00", scenario=None, name=None, **more):
    return Member(window, scenario or window, name or f"{window}-{agent}", agent, **more)


def window(at, pnls=GUIDE):
    return [member(a, window=at, pnl=p, reward=0.5 + p / 2000) for a, p in pnls.items()]


def shown(reports, least=1, **options):
    return render_windows(reports, window_readiness(reports, least), **options)


THREE = [
    m for at in ("2025-01-15T10:00", "2025-01-15T11:00", "2025-01-15T12:00") for m in window(at)
]


def test_three_windows_of_five_agents_are_ready():
    lines = shown(report_windows(THREE))
    assert "Groups that can be trained on: 3" in lines
    assert lines[0] == "✅ READY FOR TRAINING! 3 groups can be trained on."


def test_a_window_lists_its_agents_best_first_with_what_decides_and_pnl():
    lines = shown(report_windows(window("2025-01-15T10:00")))
    assert lines[3] == "2025-01-15T10:00: 5 agents; scored by verified outcomes, 0.00 to 1.00."
    assert lines[4] == "  agent-5  verified 1.00  P&L +$800.00  best"
    assert lines[8] == "  agent-2  verified 0.00  P&L -$200.00"


@pytest.mark.parametrize(
    ("field", "of_group", "of_agent"),
    [
        ("verified", "scored by verified outcomes, 0.00", "verified 1.00"),
        (
            "reported",
            "what the agents themselves report, 0.00",
            "reported by the agent itself 1.00",
        ),
        ("feedback", "scored by users' feedback, 0.00", "users' feedback 1.00"),
    ],
)
def test_it_is_said_who_reports_how_it_went(field, of_group, of_agent):
    told = [member(f"agent-{n}", reward=0.5, **{field: n / 4}) for n in range(5)]
    lines = shown(report_windows(told))
    assert of_group in lines[3]
    assert lines[4] == f"  agent-4  {of_agent}  best"


def test_it_is_said_that_nobody_reports_how_it_went():
    lines = shown(report_windows([member(f"agent-{n}", reward=0.5) for n in range(5)]), limit=None)
    assert any("nobody says how well they went" in line for line in lines)
    assert "  agent-0  nobody says how it went" in lines


def test_of_many_groups_the_most_telling_are_shown_and_the_rest_is_counted():
    flat = [
        member(str(n), window=f"2025-01-{day:02}T10:00", reward=0.9, verified=1.0)
        for day in range(1, 31)
        for n in range(5)
    ]
    reports = report_windows([*flat, *window("2024-12-31T10:00")])
    lines = shown(reports)
    first = lines.index("") + 1
    assert lines[first].startswith("2024-12-31T10:00: 5 agents; scored by verified outcomes, 0.00")
    assert sum(line.startswith("202") for line in lines) == MOST
    assert "11 more groups, of which 0 can be trained on: `--all` shows them." in lines
    assert sum(line.startswith("202") for line in shown(reports, limit=None)) == 31


def test_what_is_missing_is_said():
    lines = shown(report_windows(window("2025-01-15T10:00")[:4]))
    assert lines[1] == "Groups that can be trained on: 0"
    assert lines[0].startswith(
        "Not ready: No group is ready; nearest is 2025-01-15T10:00: 4 agents of 5"
    )
    assert shown([]) == [
        "Not ready: No groups found: nothing has been recorded yet.",
        "Groups that can be trained on: 0",
    ]


@pytest.mark.parametrize("days", [0, 1, 2, 21, 31])
def test_a_summary_comes_first_and_rows_only_on_request(days):
    flat = [
        member(str(n), window=f"2025-01-{day:02}T10:00", reward=0.9, verified=1.0)
        for day in range(1, days + 1)
        for n in range(5)
    ]
    reports = report_windows([*flat, *window("2024-12-31T10:00")])
    lines = shown(reports, limit=0)
    assert not any(line.startswith("202") for line in lines)
    assert lines[0].startswith("✅ READY FOR TRAINING!")
    groups = "1 group:" if days == 1 else f"{days} groups:"
    assert [line.split(" 5 agents")[0] for line in lines[2:-2]] == ([f"  {groups}"] if days else [])
    every = "1 group" if not days else f"{days + 1} groups"
    ways = "`--rows` shows the most telling, `--all` all."
    assert lines[-1] == f"{every}, of which 1 can be trained on: {ways}"


def test_more_windows_can_be_asked_for():
    reports = report_windows(THREE)
    assert window_readiness(reports, min_windows=3).ready
    state = window_readiness(reports, min_windows=4)
    assert not state.ready
    assert state.sentence == "3 groups ready, 4 groups needed."


def test_in_a_continuous_world_agents_count_not_trajectories():
    (only,) = report_windows([member("a", name=str(n), reward=0.5) for n in range(9)])
    assert only.agents == 1
    assert not only.ready


def test_infrastructure_faults_are_kept_and_do_not_count():
    members = [*window("2025-01-15T10:00")[:4], member("agent-9", infra_error=True, reward=0.0)]
    (only,) = report_windows(members)
    assert len(only.members) == 5
    assert (only.agents, only.infra_errors, only.ready) == (4, 1, False)
    assert "infrastructure" in only.sentence
    assert only.rewards.low > 0
    assert only.members[-1].infra_error


def test_scenarios_of_one_window_are_groups_of_their_own():
    reports = report_windows([member("a", scenario="x"), member("b", scenario="y")])
    assert [each.scenario_id for each in reports] == ["y", "x"]
    rows = [line for line in shown(reports) if line.startswith("2025-01-15T10:00 / y: ")]
    assert rows[0].startswith("2025-01-15T10:00 / y: 1 agent of 5 needed")


def test_at_a_task_attempts_count_by_one_agent_or_many():
    tries = [
        member(
            "a",
            name=str(n),
            reward=0.5,
            verified=float(n % 2),
            continuous=False,
            seq=n,
            compared_with="task t by tiny",
        )
        for n in range(4)
    ]
    (only,) = report_windows(tries)
    assert (only.attempts, only.agents, only.ready) == (4, 1, True)
    assert any(line.startswith("task t by tiny: 4 attempts;") for line in shown([only]))
    assert not report_windows(tries[:3])[0].ready


def test_a_group_that_nobody_scores_is_not_ready():
    (only,) = report_windows([member(str(n)) for n in range(5)])
    assert not only.ready
    assert only.rewards is None
    assert "5 not scored yet" in only.sentence
    assert "nobody says how well they went" in only.sentence


def test_groups_that_are_all_alike_are_named():
    (only,) = report_windows([member(str(n), reward=0.1 * n, verified=1.0) for n in range(5)])
    assert not only.ready
    assert "nobody did better than another" in only.sentence
    (same,) = report_windows([member(str(n), verified=1.0, answers="x") for n in range(5)])
    assert "all gave the same answer" in same.sentence


def test_the_machines_form_is_json():
    reports = report_windows(THREE)
    tree = json.loads(json.dumps(windows_json(reports, window_readiness(reports, 1))))
    assert tree["readyWindows"] == 3
    assert tree["readiness"]["ready"]
    assert tree["windows"][0]["window_id"] == "2025-01-15T12:00"


members = st.builds(
    Member,
    window_id=st.sampled_from(["2025-01-15T10:00", "2025-01-15T11:00"]),
    scenario_id=st.sampled_from(["x", "y"]),
    trajectory_id=st.uuids().map(str),
    agent_id=st.sampled_from("abcdef"),
    reward=st.none() | st.floats(0, 1),
    raw_total=st.none() | st.floats(0, 1),
    pnl=st.none() | st.floats(-1e6, 1e6),
    infra_error=st.booleans(),
)


@given(st.lists(members, max_size=40))
def test_nobody_is_lost_or_mixed_up(given_members):
    reports = report_windows(given_members)
    assert sorted(m.trajectory_id for r in reports for m in r.members) == sorted(
        m.trajectory_id for m in given_members
    )
    for each in reports:
        assert {(m.window_id, m.scenario_id) for m in each.members} == {
            (each.window_id, each.scenario_id)
        }
    assert shown(reports)


@pytest.mark.parametrize(
    ("world", "numbers"),
    [
        ({"pnl": 5, "balance": 10}, (5, 10)),
        ({"final_pnl": -2.5}, (-2.5, None)),
        ({"finalPnL": 7, "finalBalance": 107}, (7, 107)),
        ({"balance": 90, "initial_balance": 100}, (-10, 90)),
        ({"balance": 90}, (None, 90)),
        ({"pnl": float("nan"), "balance": "many"}, (None, None)),
        ("cloudy", (None, None)),
        (None, (None, None)),
    ],
)
def test_the_worlds_numbers_are_read_where_they_are_numbers(world, numbers):
    assert environment_numbers({"metadata": {"environment": world}}) == EnvironmentNumbers(*numbers)


# ── the world's own numbers ──────────────────────────────────────────────────────────────────────


def test_without_a_bounded_outcome_the_pnl_ranks():
    scored = group_scores(window("2025-01-15T10:00"))
    best_first = sorted(scored.scores, key=scored.scores.get, reverse=True)
    assert [name[-1] for name in best_first] == ["5", "1", "3", "4", "2"]
    assert sorted(scored.scores.values()) == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert scored.source == "verified"


def test_equal_pnl_gets_equal_scores_whatever_the_totals_say():
    scored = group_scores([member("a", pnl=1), member("b", pnl=1), member("c", pnl=3)])
    assert set(scored.scores.values()) == {0.0, 1.0}
    even = group_scores([member("a", pnl=1, raw_total=0.2), member("b", pnl=1, raw_total=0.4)])
    assert even.flat


def test_a_total_is_never_a_score():
    assert group_scores([member(a, raw_total=0.1, reward=0.2) for a in "abc"]) is None


@given(st.lists(members, min_size=2, max_size=12, unique_by=lambda m: m.trajectory_id))
def test_the_ranks_keep_the_order_of_the_pnl(ranked):
    scored = group_scores(ranked)
    if scored is None:
        return
    assert all(0 <= score <= 1 for score in scored.scores.values())
    for one in ranked:
        for other in ranked:
            if {
                one.trajectory_id,
                other.trajectory_id,
            } <= scored.scores.keys() and one.pnl < other.pnl:
                assert scored.scores[one.trajectory_id] < scored.scores[other.trajectory_id]
