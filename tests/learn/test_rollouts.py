"""A job plays worlds with the policy it trains: on-policy, bounded, and better for it."""

import asyncio
import contextlib
import threading

import msgspec
import pytest
from tests.conftest import running_loop
from tests.learn.school import School, batch
from tests.support import Client
from tests.worlds.small import policy

from upswing.api.world_server import WorldServerOptions, serve
from upswing.dataset.split import is_held_out
from upswing.train.child.rollouts import (
    FreshRollouts,
    RolloutRound,
    attempts_by_task,
    episode_example,
    run_rollouts,
)
from upswing.train.core.recipe import Recipe
from upswing.train.core.rollout_plan import RolloutSettings
from upswing.train.learn.curriculum import TaskAttempts, choose_tasks
from upswing.train.learn.example_tensors import compute_logprobs, recorded_logprobs
from upswing.train.learn.learner import ProcessGroup
from upswing.worlds.remote_world import RemoteWorld
from upswing.worlds.sampler import play_episodes
from upswing.worlds.triage import Triage

pytestmark = pytest.mark.learn
CHECK = Triage(sizes=(64, 8), tests=8, check_first=True)
RECIPE = Recipe(learning_rate=1e-3, batch_size=32, micro_tokens=4096)


def fresh(plan, world=CHECK, **options):
    player = policy()
    noted = []
    rounds = FreshRollouts(
        player.model, player.tokenizer, RECIPE, plan, world, on_round=noted.append, **options
    )
    return rounds, noted


def test_an_example_of_an_episode_has_the_tokens_and_logprobs_that_were_sampled():
    player = policy()
    played = play_episodes(CHECK, CHECK.training[:6], player, group=4, seed=3)
    examples = [episode_example(episode, "w") for episode in played]
    assert {len(episode.steps) for episode in played} == {1} or any(
        len(set(example.turns)) == 2 for example in examples
    )
    found = compute_logprobs(player.model, examples, micro_tokens=4096)
    for example, episode, logps in zip(examples, played, found, strict=True):
        assert example.ids == episode.ids
        assert sum(example.trained) == sum(len(step.completion_ids) for step in episode.steps)
        assert recorded_logprobs(example).tolist() == pytest.approx(logps.tolist(), abs=1e-4)
    assert len({example.group for example in examples}) == 6


def test_rounds_are_bounded_by_episodes():
    rounds, noted = fresh(RolloutSettings("x", rounds=50, tasks=4, attempts=4, episodes=40))
    list(rounds.run())
    assert rounds.episodes == 40
    assert [each.episodes for each in noted] == [16, 16, 8]


def test_rounds_are_bounded_by_time():
    ticks = iter(range(0, 100_000, 20))
    plan = RolloutSettings("x", rounds=50, tasks=2, attempts=2, minutes=2)
    rounds, noted = fresh(plan, clock=lambda: float(next(ticks)))
    list(rounds.run())
    assert 1 <= len(noted) < 10


def test_the_horizon_grows_from_round_to_round():
    rounds, noted = fresh(RolloutSettings("x", rounds=4, tasks=2, attempts=2))
    list(rounds.run())
    assert [each.turns for each in noted] == [1, 2, 2, 2]
    assert {each.purpose for each in noted} == {"rollout"}


def test_steps_are_numbered_on_and_rounds_that_were_done_before_are_not_repeated(tmp_path):
    player = policy()
    recipe = msgspec.structs.replace(
        RECIPE, rollouts=RolloutSettings("triage", rounds=4, tasks=6, attempts=4)
    )

    def run(first):
        return list(
            run_rollouts(
                player.model,
                player.tokenizer,
                recipe,
                tmp_path,
                process_group=ProcessGroup(),
                clock=lambda: 0.0,
                first_step=first,
            )
        )

    (tmp_path / "artifacts").mkdir()
    (tmp_path / "artifacts" / "rollouts.jsonl").write_bytes(
        b"".join(
            msgspec.json.encode(RolloutRound(n, 1, 6, 24, 0.0, 0.0, 0, 1.0, last_step=n * 5))
            + b"\n"
            for n in (1, 2, 3)
        )
        + b'{"round": 4, "tu'
    )
    steps = run(10)
    assert [each.step for each in steps] == list(range(11, 11 + len(steps)))
    assert {each.epoch for each in steps} <= {3, 4}, "the third is not in the weights of step 10"
    lines = (tmp_path / "artifacts" / "rollouts.jsonl").read_bytes().splitlines()
    assert [msgspec.json.decode(line, type=RolloutRound).round for line in lines] == [1, 2, 3, 4]


def test_tasks_that_are_held_out_are_never_played():
    player, plan = policy(), RolloutSettings("x", rounds=1, tasks=64, attempts=2)
    recipe = msgspec.structs.replace(RECIPE, holdout=0.5)
    rounds = FreshRollouts(player.model, player.tokenizer, recipe, plan, CHECK)
    played = {episode.task.task_id for episode in rounds._play_round(0, 64)}
    tasks = {task.task_id for task in CHECK.training}
    assert played == {task for task in tasks if not is_held_out(task, 0.5)} < tasks


def test_the_first_round_tries_what_the_log_says_to_be_in_between():
    names = [
        task.task_id for task in CHECK.training if not is_held_out(task.task_id, RECIPE.holdout)
    ]
    between = set(names[:16])
    tries = {name: TaskAttempts(40, 20 if name in between else 0) for name in names}
    rounds, _ = fresh(RolloutSettings("x", rounds=1, tasks=10, attempts=2), task_attempts=tries)
    played = {episode.task.task_id for episode in rounds._play_round(0, 10)}
    assert (len(played), len(played & between) >= 7) == (10, True)


def test_what_was_logged_is_counted_by_task():
    episodes = play_episodes(CHECK, CHECK.training[:3], policy(), group=4, seed=1)
    examples = [episode_example(episode, "w") for episode in episodes]
    found = attempts_by_task(examples)
    assert {task: each.attempts for task, each in found.items()} == {
        task.task_id: 4 for task in CHECK.training[:3]
    }
    assert sum(each.successes for each in found.values()) == sum(e.reward >= 0.5 for e in examples)


def test_without_a_plan_nothing_is_played(tmp_path):
    assert not list(
        run_rollouts(
            None,
            None,
            RECIPE,
            tmp_path,
            process_group=ProcessGroup(),
            clock=lambda: 0.0,
            first_step=0,
        )
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["mine", "triage"])
def test_a_world_that_is_registered_is_played_by_its_name(tmp_path, name):
    player = policy()
    recipe = msgspec.structs.replace(
        RECIPE, rollouts=RolloutSettings(name, rounds=1, tasks=6, attempts=4)
    )
    list(
        run_rollouts(
            player.model,
            player.tokenizer,
            recipe,
            tmp_path,
            process_group=ProcessGroup(),
            clock=lambda: 0.0,
            first_step=0,
            worlds={"mine": "upswing.worlds.triage:Triage"},
        )
    )
    (line,) = (tmp_path / "artifacts" / "rollouts.jsonl").read_bytes().splitlines()
    assert msgspec.json.decode(line, type=RolloutRound).episodes == 24


@contextlib.contextmanager
def served(world):
    """The world on a port of this machine, from another thread."""
    ready, address = threading.Event(), []
    loop, stop = asyncio.new_event_loop(), asyncio.Event()

    def told(url):
        address.append(url)
        ready.set()

    thread = threading.Thread(
        target=lambda: loop.run_until_complete(serve(world, WorldServerOptions(), told, stop))
    )
    thread.start()
    try:
        assert ready.wait(300)
        yield address[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(300)
        loop.close()


def test_a_world_behind_http_is_played_like_one_at_home():
    world, player = CHECK, policy()
    with served(world) as url, RemoteWorld(url) as far:
        assert (far.max_turns, len(far.training)) == (2, 64)
        names = choose_tasks({}, [task.task_id for task in far.training], 3, 0)
        there = play_episodes(
            far, [t for t in far.training if t.task_id in names], player, group=3, seed=1
        )
        first = far.reset(far.training[0])
        task = world.training[0]
        assert far.observe(first).text == f"{task.instructions}\n{task.text}"
        state = far.step(first, "check")
        assert far.observe(state).text == f"it is a {task.product}"
        assert far.outcome(far.step(state, task.answer)).success
    assert len(there) == 9
    assert all(not episode.outcome.fault for episode in there)


def test_a_world_that_goes_away_spoils_episodes_and_no_agent_is_blamed():
    with served(CHECK) as url:
        far = RemoteWorld(url)
    assert far.outcome(far.reset(far.training[0])).fault
    far.__exit__()


@pytest.mark.long
@pytest.mark.live
async def test_a_job_of_the_loop_plays_after_it_has_learned_from_the_log(data, bases):
    data.mkdir(mode=0o700)
    (data / "bases").symlink_to(bases)
    async with (
        running_loop(data) as loop,
        Client(loop.running.http_url, loop.running.key) as client,
    ):
        school = School(client, Triage(), bases)
        await school.record(batch(school.world, 0, 16))
        told = {"world": "triage", "rounds": 3, "tasks": 8, "attempts": 8}
        status = await school.train(
            "grpo", rollouts=told, learning_rate=3e-4, epochs=1, micro_tokens=8192
        )
        assert status["status"] == "completed", status
    (notes,) = data.rglob("rollouts.jsonl")
    rounds = [
        msgspec.json.decode(line, type=RolloutRound) for line in notes.read_bytes().splitlines()
    ]
    assert [(each.round, each.episodes) for each in rounds] == [(1, 64), (2, 64), (3, 64)]


@pytest.mark.slow
def test_fresh_rollouts_learn_more_than_logged_episodes_of_the_base_at_equal_numbers(bases):
    from bench.rollouts import run

    base, logged, better = run(0, bases)
    assert better > max(base, logged) + 0.05
