"""Do fresh rollouts beat training on what was logged, at equal episodes? `tiny` in the crafting world.

    python -m bench rollouts            every seed
    UPSWING_ROLLOUT_SEEDS=0,1 python -m bench rollouts

Both begin with the same base and have the same number of episodes. The logged ones are all the base's own,
played in full; training passes over them as often as `PASSES` says, and the best of these counts for it. The
fresh ones are played by the policy in training, round after round. Scores are those of 300 tasks of the third
split, four samples each.
"""

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from bench.harness import Row

SEEDS = range(5)
ROUNDS, TASKS, ATTEMPTS = 10, 32, 8
PASSES, FRESH_PASSES = (1, 2), 2
KNOBS = {
    "learning_rate": 1e-3,
    "batch_size": 64,
    "micro_tokens": 8192,
    "holdout": 0.0,
}


def rows():
    told = os.environ.get("UPSWING_ROLLOUT_SEEDS")
    seeds = tuple(int(seed) for seed in told.split(",")) if told else tuple(SEEDS)
    bases = Path(tempfile.mkdtemp(prefix="upswing-rollouts-"))
    try:
        runs = [run(seed, bases) for seed in seeds]
    finally:
        shutil.rmtree(bases, ignore_errors=True)
    gains = [fresh - logged for _, logged, fresh in runs]
    peer = "; ".join(
        f"{base:.2f} → {logged:.2f} logged, {fresh:.2f} fresh" for base, logged, fresh in runs
    )
    return [
        Row(
            name=f"fresh rollouts, crafting: gain over logged only, worst of {len(seeds)} seeds",
            value=min(gains),
            target=0.0,
            unit="",
            peer=peer,
        ),
        Row(
            name="fresh rollouts, crafting: score, median",
            value=median(r[2] for r in runs),
            target=median(r[1] for r in runs),
            unit="",
            peer=f"{ROUNDS * TASKS * ATTEMPTS} episodes",
        ),
    ]


def run(seed, bases):
    """(base, logged, fresh): mean scores on the third split."""
    from upswing.worlds.crafting import Crafting
    from upswing.worlds.measure import mean_interval, measure_policy

    world = Crafting(seed)

    def score(model, tokenizer):
        return mean_interval(
            measure_policy(world, _policy(model.eval(), tokenizer), seed=seed)
        ).mean

    base = score(*_model(bases))
    fresh = score(*_fresh(world, seed, bases))
    examples = _played(world, seed, bases)
    logged = max(score(*_logged(examples, seed, bases, passes)) for passes in PASSES)
    _say(f"seed {seed}: base {base:.3f}, logged {logged:.3f}, fresh {fresh:.3f}")
    return base, logged, fresh


def _fresh(world, seed, bases):
    from upswing.train.child.rollouts import FreshRollouts
    from upswing.train.core.recipe import Recipe
    from upswing.train.core.rollout_plan import RolloutSettings

    model, tokenizer = _model(bases)
    plan = RolloutSettings(
        "crafting",
        seed,
        ROUNDS,
        TASKS,
        ATTEMPTS,
        FRESH_PASSES,
        minutes=60,
        episodes=ROUNDS * TASKS * ATTEMPTS,
    )
    began = time.monotonic()
    rounds = FreshRollouts(
        model,
        tokenizer,
        Recipe(seed=seed, **KNOBS),
        plan,
        world,
        clock=time.monotonic,
        on_round=_say,
    )
    steps = sum(1 for _ in rounds.run())
    _say(f"  fresh: {rounds.episodes} episodes, {steps} steps, {time.monotonic() - began:.0f} s")
    return model, tokenizer


def _played(world, seed, bases):
    """As many episodes of the base as fresh ones are played."""
    from upswing.train.child.rollouts import episode_example
    from upswing.worlds.sampler import play_episodes

    policy, examples = _policy(*_model(bases)), []
    for number in range(ROUNDS):
        tasks = [world.training[(number * TASKS + at) % len(world.training)] for at in range(TASKS)]
        played = play_episodes(world, tasks, policy, group=ATTEMPTS, seed=seed * 100 + number)
        examples += [episode_example(episode, f"logged-{number}") for episode in played]
    return examples


def _logged(examples, seed, bases, passes):
    from upswing.train.child.rollouts import sampled_tensors
    from upswing.train.core.recipe import Recipe
    from upswing.train.learn.credit import learning_signal
    from upswing.train.learn.learner import Learner

    model, tokenizer = _model(bases)
    began = time.monotonic()
    recipe = Recipe(seed=seed, epochs=passes, **KNOBS)
    signal = learning_signal(examples, [sampled_tensors(example) for example in examples], recipe)
    model.train()
    steps = sum(1 for _ in Learner(model, examples, signal, recipe).run())
    _say(f"  logged: {len(examples)} episodes, {steps} steps, {time.monotonic() - began:.0f} s")
    return model, tokenizer


def _model(bases):
    from upswing.train.bases.catalog import resolve_base
    from upswing.train.bases.loading import load_base, set_threads

    model, tokenizer = load_base(resolve_base("tiny", bases))
    set_threads(model, None)
    return model, tokenizer


def _policy(model, tokenizer):
    from upswing.worlds.sampler import SamplingPolicy

    return SamplingPolicy("tiny", model, tokenizer)


def _say(line):
    print(line, file=sys.stderr, flush=True)
