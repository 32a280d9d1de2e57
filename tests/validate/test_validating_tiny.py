"""The real `tiny` behind the real model server: who has learned the world's rule passes, and back is a fail."""

import asyncio
from datetime import UTC, datetime

import pytest
import torch

from tests.validate.prover import Prover
from upswing.config import ValidateConfig
from upswing.infra.sql.store import open_store
from upswing.serve.process import ModelProcess, ModelServerSettings
from upswing.train.bases.catalog import resolve_base
from upswing.train.bases.loading import load_base, make_trainable
from upswing.train.checkpoints.manifest import CheckpointInfo
from upswing.train.checkpoints.writing import save_checkpoint
from upswing.train.core.recipe import Recipe
from upswing.worlds.chat import Chat
from upswing.worlds.triage import Triage

pytestmark = [pytest.mark.live, pytest.mark.learn]
CONFIG = ValidateConfig(suites=("world:triage", "data_analysis", "safety_toxicity"))
AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
STEPS, BATCH = 40, 32
WORLD = Triage(sizes=(1152, 48))


def told_the_rule(base, folder):
    """A checkpoint of `tiny` after a short course in the world's training tasks."""
    recipe = Recipe(full=True)
    model, tokenizer = load_base(base)
    model = make_trainable(model, recipe)
    chat, chance = Chat(tokenizer), torch.Generator().manual_seed(0)
    steps = torch.optim.AdamW(model.parameters(), lr=2e-3)
    tasks = WORLD.training
    for _ in range(STEPS):
        picked = torch.randint(len(tasks), (BATCH,), generator=chance).tolist()
        model(**lesson([tasks[place] for place in picked], chat, tokenizer)).loss.backward()
        steps.step()
        steps.zero_grad()
    facts = CheckpointInfo(
        base_model=base.name, job_id="job-1", step=STEPS, created=AT, recipe=recipe
    )
    return save_checkpoint(folder, "taught", model.eval(), info=facts, base_folder=base.folder)


def lesson(tasks, chat, tokenizer):
    """Prompts and right answers, padded to one length."""
    asked = [chat.first_prompt(task.instructions, task.text) for task in tasks]
    said = [
        (*tokenizer(task.answer, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id)
        for task in tasks
    ]
    longest = max(len(one) + len(other) for one, other in zip(asked, said, strict=True))
    ids_BT, mask_BT = torch.zeros(2, len(tasks), longest, dtype=torch.long)
    labels_BT = torch.full_like(ids_BT, -100)
    for row, (one, other) in enumerate(zip(asked, said, strict=True)):
        end = len(one) + len(other)
        ids_BT[row, :end], mask_BT[row, :end] = torch.tensor([*one, *other]), 1
        labels_BT[row, len(one) : end] = torch.tensor(other)
    return {"input_ids": ids_BT, "attention_mask": mask_BT, "labels": labels_BT}


@pytest.mark.long
async def test_who_knows_the_rule_passes_and_who_does_not_fails(bases, tmp_path):
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        path = await asyncio.to_thread(told_the_rule, resolve_base("tiny", bases), tmp_path / "ck")
    finally:
        torch.set_num_threads(before)
    server = ModelProcess(
        ModelServerSettings(base="tiny", cache=bases, threads=1), tmp_path / "server"
    )
    url = await server.start()
    store = open_store(tmp_path)
    await store.prepare()

    async def find(model):
        if model != "tiny":
            await server.load(model, path)
        return url, model

    try:
        async with Prover(tmp_path, store, find, CONFIG, worlds={"triage": WORLD}) as prover:
            better = await prover.runner.validate("agent-zero-rl-v1", "tiny")
            worse = await prover.runner.validate("tiny", "agent-zero-rl-v1")
    finally:
        store.close()
        await server.stop()
    assert (better.verdict, worse.verdict) == ("pass", "fail")
    assert better.improvement.lower > 0  # at temperature 1, as its agents use it
    assert [suite.name for suite in better.suites if suite.counted] == ["world:triage"]
    assert all(suite.done == suite.planned for suite in better.suites)
