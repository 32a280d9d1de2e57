"""Does a real language model get better, cycle after cycle, at a user's own tasks? `smollm2`, and nobody.

    pip install '.[reasoning]'
    python -m bench reasoning --seed 0 --cycles 3 --minutes 60

A user's agent asks the gateway with OpenAI's client, with a solved example before each question, and says
afterwards what would have been right: `docs/your-own-agent.md`, no more. Its tasks are two families of
reasoning-gym in which the best constant answer is right in less than one case of ten. What every promoted model
can do is measured afterwards from the kept checkpoints, on tasks that were never asked. Prints one line of JSON.
"""

import argparse
import json
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random
from uuid import uuid4

from bench.unattended import LOOK_SECONDS, ask, job_said, loop, policy_of, say, served_by

SETTINGS = {
    "RL_BASE_MODEL": "smollm2",
    "RL_TRAINING_THRESHOLD": "480",
    "CANARY_RAMP_HOURS": "0.02",
}
FAMILIES = {
    "word_sorting": {"min_words": 2, "max_words": 2},
    "number_filtering": {
        "min_numbers": 3,
        "max_numbers": 3,
        "min_decimals": 0,
        "max_decimals": 0,
        "min_value": 1,
        "max_value": 20,
    },
}
TASKS, ATTEMPTS, AT_ONCE, LONGEST = 200, 6, 4, 24
"""Tasks of a family that are asked, attempts at each in a row, requests at once, tokens of a reply."""
_APART = 1_000_003
"""Between the seed of what is asked and that of what is only measured."""


@dataclass(frozen=True)
class Question:
    task_id: str
    messages: list
    answer: str


def questions(seed, count):
    """So many questions of each family, shuffled."""
    import reasoning_gym

    found = []
    for family, options in FAMILIES.items():
        solved = list(reasoning_gym.create_dataset(family, size=1, seed=7, **options))
        shown = [
            {"role": role, "content": each[key]}
            for each in solved
            for role, key in (("user", "question"), ("assistant", "answer"))
        ]
        for number, each in enumerate(
            reasoning_gym.create_dataset(family, size=count, seed=seed, **options)
        ):
            asked = [*shown, {"role": "user", "content": each["question"]}]
            found.append(Question(f"{family}-{seed}-{number}", asked, each["answer"]))
    Random(seed).shuffle(found)
    return found


def best_constant(asked):
    """The share of right answers of whoever always says the same, in the family where that is highest."""
    shares = []
    for family in FAMILIES:
        answers = Counter(each.answer for each in asked if each.task_id.startswith(family))
        shares.append(max(answers.values()) / answers.total())
    return max(shares)


class Agent:
    """Works until it is told to stop."""

    def __init__(self, info, asked):
        from openai import OpenAI

        self._client = OpenAI(
            base_url=f"{info['gateway_url']}/v1", api_key=info["key"], max_retries=8
        )
        self._asked = asked
        self._over = threading.Event()
        self.episodes = self.right = 0

    def await_ready(self):
        """Until a model answers: `upswing up` is found before its model server has loaded the base."""
        from openai import InternalServerError

        while True:
            try:
                self._client.chat.completions.create(
                    model="upswing", messages=self._asked[0].messages, max_tokens=1
                )
            except InternalServerError:
                time.sleep(LOOK_SECONDS)
            else:
                return

    def attempt(self, question):
        if self._over.is_set():
            return
        episode = str(uuid4())
        reply = self._client.chat.completions.create(
            model="upswing",
            messages=question.messages,
            max_tokens=LONGEST,
            temperature=1.0,
            extra_headers={"x-episode-id": episode, "x-task-id": question.task_id},
        )
        right = (reply.choices[0].message.content or "").strip() == question.answer
        self._client.post(
            f"/episodes/{episode}/close",
            cast_to=object,
            body={
                "outcome": {"status": "completed" if right else "failed", "source": "verifier"},
                "metadata": {"ground_truth": {"answer": question.answer}},
            },
        )
        self.episodes += 1
        self.right += right

    def run(self, seed):
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for number in range(1000):
                order = list(self._asked)
                Random(f"{seed}/{number}").shuffle(order)
                list(pool.map(self.attempt, [each for each in order for _ in range(ATTEMPTS)]))
                if self._over.is_set():
                    return

    def stop(self):
        self._over.set()


def main(words):
    parser = argparse.ArgumentParser(prog="python -m bench reasoning")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cycles", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=60.0, help="at most")
    parser.add_argument("--tasks", type=int, default=40, help="of each family, never asked")
    parser.add_argument("--samples", type=int, default=2, help="of each of these")
    parser.add_argument("--keep", type=Path, help="leave the data directory here")
    parser.add_argument("--bases", type=Path, help="bases that were made before")
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory(
        prefix="upswing-reasoning-", ignore_cleanup_errors=True
    ) as name:
        print(json.dumps(run(options.keep or Path(name), options)), flush=True)
    return 0


def run(home, options):
    data = home / "data"
    data.mkdir(parents=True, mode=0o700)
    if options.bases:
        (data / "bases").symlink_to(options.bases.resolve())
    asked = questions(options.seed, TASKS)
    with loop(data, home / "loop.log", SETTINGS) as info:
        agent = Agent(info, asked)
        agent.await_ready()
        worker = threading.Thread(target=agent.run, args=(options.seed,), daemon=True)
        began = time.monotonic()
        seen = [(served_by(info), 0.0)]
        worker.start()
        while (now := time.monotonic() - began) < options.minutes * 60 and worker.is_alive():
            if (baseline := served_by(info)) != seen[-1][0]:
                seen.append((baseline, now))
                say(f"{now:.0f} s: {baseline} has all traffic, {agent.episodes} episodes")
                if len(seen) > options.cycles:
                    break
            time.sleep(LOOK_SECONDS)
        agent.stop()
        worker.join()
        models = {each["model_id"]: each for each in ask(info, "/models")["models"]}
        jobs = ask(info, "/jobs?limit=1000")["jobs"]
    fresh = questions(options.seed + _APART, options.tasks)
    scores = {}
    for name in dict.fromkeys(name for name, _ in seen):
        policy = policy_of(name, models.get(name), data / "bases")
        scores[name] = _measured(policy, fresh, options.samples)
        say(f"{name}: {sum(scores[name].values()) / len(scores[name]):.3f}")
    return _told(options, seen, scores, models, jobs, agent, best_constant(asked + fresh))


def _measured(policy, asked, samples):
    """Task → share of right answers, sampled as the agent samples."""
    from upswing.worlds.generate import GenerationParams, generate_completions

    tokenizer = policy.tokenizer
    prompts = [
        tuple(
            tokenizer.apply_chat_template(
                each.messages, add_generation_prompt=True, tokenize=True, return_dict=True
            )["input_ids"]
        )
        for each in asked
        for _ in range(samples)
    ]
    chances = [Random(f"{row}") for row in range(len(prompts))]
    ends = policy.ends()
    drawn = generate_completions(
        policy.model, prompts, chances, GenerationParams(ends, LONGEST, batch=16)
    )
    scores = {}
    for row, each in enumerate(drawn):
        question = asked[row // samples]
        text = tokenizer.decode([id_ for id_ in each.ids if id_ not in ends]).strip()
        scores[question.task_id] = (
            scores.get(question.task_id, 0.0) + (text == question.answer) / samples
        )
    return scores


def _told(options, seen, scores, models, jobs, agent, constant):
    from upswing.worlds.measure import gain_interval, mean_interval

    first, last = seen[0][0], seen[-1][0]
    return {
        "families": list(FAMILIES),
        "seed": options.seed,
        "best_constant": round(constant, 4),
        "promotions": len(seen) - 1,
        "base": mean_interval(scores[first]).to_json(),
        "cycles": [
            {
                "model": after,
                "seconds": round(at, 1),
                "score": mean_interval(scores[after]).to_json(),
                "gain": gain_interval(scores[before], scores[after]).to_json(),
            }
            for (before, _), (after, at) in pairwise(seen)
        ],
        "gain": gain_interval(scores[first], scores[last]).to_json(),
        "episodes": agent.episodes,
        "jobs": [job_said(each) for each in reversed(jobs)],
        "models": {name: each["state"] for name, each in models.items()},
    }
