"""trl's GRPOTrainer on one of our worlds: samples and seconds until held-out tasks are scored well enough.

    python trl_grpo.py BASE_FOLDER SEED TARGET MOST_SAMPLES KNOBS_JSON

The world has one turn, so trl generates by itself. Measuring is taken out of the seconds.
"""

import json
import logging
import os
import sys
import tempfile
import time
import warnings

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
warnings.filterwarnings("ignore")


def main(folder, seed, target, most, knobs):
    import torch
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, AutoTokenizer, PrinterCallback, TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    from upswing.worlds.measure import mean_interval, measure_policy
    from upswing.worlds.sampler import SamplingPolicy
    from upswing.worlds.triage import Triage

    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    world = Triage(seed)
    by_id = {task.task_id: task for task in world.training}
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tasks, attempts = knobs["tasks"], knobs["attempts"]
    prompts = [
        {
            "prompt": [
                {"role": "system", "content": task.instructions},
                {"role": "user", "content": task.text},
            ],
            "task_id": task.task_id,
        }
        for task in world.training
    ]

    def reward(completions, task_id, **_):
        said = [each[0]["content"] for each in completions]
        pairs = zip(said, task_id, strict=True)
        return [
            world.outcome(world.step(world.reset(by_id[name]), text)).score for text, name in pairs
        ]

    def scored():
        found = measure_policy(world, SamplingPolicy("trl", model, tokenizer), seed=seed)
        return mean_interval(found).mean

    rounds = knobs["steps"] * knobs["passes"]
    trail, took, clock = [], [0.0], [0.0]

    class Measure(TrainerCallback):
        def on_train_begin(self, *_, **__):
            clock[0] = time.monotonic()

        def on_step_end(self, _, state, control, **__):
            if state.global_step % rounds:
                return
            took[0] += time.monotonic() - clock[0]
            samples = state.global_step // rounds * tasks * attempts
            trail.append((samples, round(took[0], 2), round(scored(), 4)))
            print(trail[-1], file=sys.stderr, flush=True)
            if trail[-1][2] >= target or samples >= most:
                control.should_training_stop = True
            model.train()
            clock[0] = time.monotonic()

    with tempfile.TemporaryDirectory() as out:
        size = tasks * attempts // knobs["steps"]
        config = GRPOConfig(
            output_dir=out,
            seed=seed,
            learning_rate=knobs["learning_rate"],
            use_cpu=True,
            lr_scheduler_type="constant",
            per_device_train_batch_size=size,
            steps_per_generation=knobs["steps"],
            num_iterations=knobs["passes"],
            num_generations=attempts,
            max_completion_length=8,
            temperature=1.0,
            top_p=1.0,
            top_k=0,
            beta=0.0,
            epsilon=0.2,
            epsilon_high=0.28,
            max_grad_norm=1.0,
            weight_decay=0.0,
            report_to=[],
            save_strategy="no",
            logging_strategy="no",
            max_steps=rounds * (most // (tasks * attempts)),
            disable_tqdm=True,
            bf16=False,
        )
        trainer = GRPOTrainer(
            model=model,
            reward_funcs=reward,
            args=config,
            train_dataset=Dataset.from_list(prompts),
            processing_class=tokenizer,
            callbacks=[Measure()],
        )
        trainer.remove_callback(PrinterCallback)  # what is printed here is one line of JSON
        trainer.train()
    return {"trail": trail, "reached": bool(trail) and trail[-1][2] >= target}


if __name__ == "__main__":
    folder, seed, target, most, knobs = sys.argv[1:]
    told = main(folder, int(seed), float(target), int(most), json.loads(knobs))
    print(json.dumps(told))
