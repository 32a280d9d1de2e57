"""Do old checkpoints go by themselves, and those of deployed models stay?"""

from datetime import timedelta

import pytest
from checkpoint_cases import AT, facts, fresh_model, make_base
from tests.conftest import running_loop

from upswing.infra.sql.models import DEPLOYED
from upswing.train.checkpoints.writing import save_checkpoint

pytestmark = pytest.mark.live


async def test_maintenance_deletes_old_checkpoints_but_none_of_a_deployed_model(data, tmp_path):
    base, clock = make_base(tmp_path / "base"), [AT]
    model = fresh_model(base, "adapter")
    async with running_loop(data, clock=lambda: clock[0]) as loop:
        for name, day in (("old", 0), ("young", 2), ("deployed", 0)):
            at = AT + timedelta(days=day)
            made = save_checkpoint(
                tmp_path / name, "final", model, info=facts(created=at), base_folder=base
            )
            path = await loop.trainers.checkpoint_store.upload(made, f"job-{name}/final")
            model_id = await loop.models.register(
                job_id=name,
                base_model="tiny",
                parent=None,
                snapshot="s",
                path=path,
                card="",
                samples=1,
                final_reward=None,
                now=at,
            )
        sql = "UPDATE models SET state = ?, deployed_us = 1 WHERE model_id = ?"
        await loop.store.database.write(lambda tx: tx.execute(sql, (DEPLOYED, model_id)))
        clock[0] = AT + timedelta(days=91)
        await loop.maintenance.run_once()
        left = {kept.prefix for kept in await loop.trainers.checkpoint_store.listing()}
    assert left == {"job-young/final", "job-deployed/final"}
