"""Rounds of recording and training through a running loop: what a user's agents would do."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from tests.conftest import running_loop
from tests.learn.recipes import RECIPES, ROUNDS
from tests.support import Client, raw, until

WINDOW = datetime(2026, 11, 15, 10, tzinfo=UTC)


class School:
    """Plays a world with the newest model, records through HTTP, and asks for training."""

    def __init__(self, client, world, bases, base="tiny", *, seed=0):
        self.client, self.world, self.base, self.seed = client, world, base, seed
        self.bases = bases
        """Where bases are kept that we make ourselves."""
        self.rounds = 0
        self.model_id = None
        self.seconds = 0.0
        self.statuses = []

    def policy(self, **options):
        """The newest model; the base before there is one."""
        from upswing.train.bases.catalog import resolve_base
        from upswing.train.bases.loading import load_base, make_trainable
        from upswing.train.core.recipe import Recipe
        from upswing.worlds.sampler import SamplingPolicy

        base = resolve_base(self.base, self.bases)
        model, tokenizer = load_base(base)
        if self.model_id is not None:
            folder = Path(self.path.removeprefix("file://"))
            model = make_trainable(model, Recipe(), folder, full=base.full)
        return SamplingPolicy(self.model_id or self.base, model.eval(), tokenizer, **options)

    async def record(self, tasks, group=8, **options):
        """Play and record a round; every trajectory is scored when it returns. The share of successes."""
        from upswing.worlds.recording import to_trajectories
        from upswing.worlds.sampler import play_episodes

        policy = self.policy(**options)
        played = await asyncio.to_thread(
            play_episodes,
            self.world,
            tasks,
            policy,
            group=group,
            seed=1000 * self.seed + self.rounds,
        )
        started = WINDOW + timedelta(hours=self.rounds)
        trees = to_trajectories(
            played,
            namespace=uuid5(NAMESPACE_URL, f"school-{self.seed}"),
            window_id=started.strftime("%Y-%m-%dT%H:00"),
            started=started,
        )
        await self.post(trees)
        self.rounds += 1
        return sum(episode.outcome.success for episode in played) / len(played)

    async def post(self, trees):
        """Record these; every one is scored when it returns."""
        lines = [raw(tree) for tree in trees]
        for first in range(0, len(lines), 200):
            status, answer = await self.client(
                "POST",
                "/v1/trajectories",
                b"\n".join(lines[first : first + 200]),
                kind="application/x-ndjson",
            )
            assert status in (200, 202), answer
        waiting = [tree["trajectory_id"] for tree in trees]

        async def all_scored():
            """Asked for one by one, from the last on: those that are scored are not asked for again."""
            while waiting:
                status, _ = await self.client("GET", f"/v1/rewards/{waiting[-1]}")
                if status != 200:
                    return False
                waiting.pop()
            return True

        await until(all_scored, 120)

    async def ask(self, algorithm, *, samples=10_000, name=None, **recipe):
        """Ask for a job over HTTP; its name."""
        window = WINDOW + timedelta(hours=self.rounds - 1)
        request = {
            "training_job_id": name or f"round-{self.rounds}-{algorithm}",
            "timestamp": WINDOW.isoformat(),
            "requester": "school",
            "trigger_reason": "manual",
            "training_config": {
                "algorithm": algorithm,
                "base_model": self.model_id or self.base,
                "dataset": {
                    "source": "local",
                    "sample_size": samples,
                    "filter": {"date_range": {"start": window.isoformat()}},
                },
                "hyperparameters": {},
            },
            "metadata": {"recipe": {"seed": self.rounds, **recipe}},
        }
        status, answer = await self.client("POST", "/training/start", request)
        assert status == 202, answer
        return request["training_job_id"]

    async def train(self, algorithm, *, samples=10_000, seconds=600, name=None, **recipe):
        """Ask for a job and wait for its end; its last status."""
        job_id = await self.ask(algorithm, samples=samples, name=name, **recipe)
        ended = await until(lambda: self.ended(job_id), seconds, f"{job_id} did not end")
        self.statuses.append(ended)
        if ended["status"] == "completed":
            self.model_id = ended["metadata"]["model_id"]
            self.path = ended["artifacts"]["final_checkpoint"]
            self.seconds += ended["resource_usage"]["total_training_time_seconds"]
        return ended

    async def ended(self, job_id):
        _, status = await self.client("GET", f"/training/{job_id}/status")
        return status if status["status"] in ("completed", "failed", "cancelled") else None

    def success_rate(self, *, greedy=True):
        """On the world's held-out tasks."""
        from upswing.worlds.sampler import success_rate

        return success_rate(self.world, self.world.held_out, self.policy(), greedy=greedy, seed=7)


def batch(world, number, size=96):
    """The next training tasks, round and round."""
    tasks = world.training
    return [tasks[(number * size + index) % len(tasks)] for index in range(size)]


async def learn(
    data,
    bases,
    algorithm,
    *,
    rounds=ROUNDS,
    seed=0,
    told=lambda scores: None,
    recipe=None,
    world=None,
):
    """Record and train, round after round: greedy success before and after each, and the school.

    `recipe` are the knobs of every job; {} leaves all of them to the loop.
    """
    from upswing.worlds.triage import Triage

    knobs = RECIPES[algorithm] if recipe is None else recipe
    data.mkdir(mode=0o700)
    (data / "bases").symlink_to(bases)
    async with (
        running_loop(data) as loop,
        Client(loop.running.http_url, loop.running.key) as client,
    ):
        school = School(client, world or Triage(seed=seed), bases, seed=seed)
        scores = [school.success_rate()]
        for number in range(rounds):
            await school.record(batch(school.world, number))
            status = await school.train(algorithm, **knobs)
            if status["status"] != "completed":
                assert "nothing to learn" in status["error"]["message"], json.dumps(status)
                break  # everybody does everything right
            scores.append(school.success_rate())
            told(scores)
        return scores, school
