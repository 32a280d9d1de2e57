"""What does a job leave on the disk, so that another child can go on, and a person can inspect it?"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import msgspec
from torch import nn

from upswing.contracts.typed import from_json, json_decoder
from upswing.dataset.snapshot import Snapshot
from upswing.train.bases.catalog import BaseModel
from upswing.train.checkpoints.checking import verify
from upswing.train.checkpoints.folders import newest_checkpoint, prune_checkpoints, step_name
from upswing.train.checkpoints.manifest import CheckpointInfo, InvalidCheckpoint, Manifest
from upswing.train.checkpoints.reading import load_weights, restore_checkpoint, set_weights
from upswing.train.checkpoints.state import TrainerState
from upswing.train.checkpoints.writing import save_checkpoint
from upswing.train.child.curves import draw_curves
from upswing.train.child.tensorboard import open_tensorboard
from upswing.train.core.card import ModelCard, render_card
from upswing.train.core.report import ENCODER, StepReport, TrainingDone, TrainingStarted
from upswing.train.core.spec import JobSpec
from upswing.train.learn.evaluation import PolicyEvaluation
from upswing.train.learn.learner import Learner

S = TypeVar("S", StepReport, PolicyEvaluation)
_MEASURE_TEXT = {
    "logged": "reward on held-out tasks, estimated from logged trajectories",
    "fresh": "reward on held-out tasks, of fresh attempts",
}


class JobOutputs:
    """The checkpoints and curves of one job."""

    def __init__(
        self, folder: Path, spec: JobSpec, base: BaseModel, model: nn.Module, learner: Learner
    ) -> None:
        self._folder = folder
        self._checkpoints = folder / "checkpoints"
        self._spec = spec
        self._base = base
        self._model = model
        self._learner = learner
        self._steps: list[StepReport] = []
        self.evaluations: list[PolicyEvaluation] = []
        """The start policy's first, then those after steps."""
        self._best: float | None = None
        self._best_step: int | None = None
        self._writes = learner.process_group.rank == 0
        """Of several processes that train together, one writes."""
        self.step = 0

    def restore(self) -> int:
        """Go on from the newest whole checkpoint; how many steps are done."""
        path = newest_checkpoint(
            self._checkpoints, at_most_step=self._spec.last_good_step, base=self._base.folder
        )
        if path is not None:
            state = restore_checkpoint(
                path, self._model, self._learner.optimizer, base=self._base.folder
            )
            if self._learner.value_head is not None:
                self._learner.value_head.load_state_dict(dict(state.value))
            self.step, self._best, self._best_step = state.step, state.best, state.best_step
            self._learner.tokens = int(state.scalars.get("tokens") or 0)
        self._steps = self._truncate_file("steps.jsonl", StepReport)
        self.evaluations = self._truncate_file("evaluations.jsonl", PolicyEvaluation)
        return self.step

    def record_step(self, stepped: StepReport) -> None:
        """Remember a step."""
        self.step = stepped.step
        self._steps.append(stepped)
        self._append_line("steps.jsonl", stepped)

    def record_evaluation(self, evaluation: PolicyEvaluation) -> None:
        """Remember an evaluation."""
        self.evaluations.append(evaluation)
        self._append_line("evaluations.jsonl", evaluation)

    def save(self, stepped: StepReport, holdout_value: float | None, *, best: bool) -> Path:
        """A checkpoint to go on from; the best so far is kept beside it, whatever comes."""
        if best:
            self._best, self._best_step = holdout_value, stepped.step
        path = self._checkpoints / step_name(stepped.step)
        if self._writes:
            state = self._trainer_state(stepped)
            self._write_checkpoint(path.name, state)
            if best:
                self._write_checkpoint("best", None)
            prune_checkpoints(self._checkpoints, self._spec.recipe.max_checkpoints)
        self._learner.process_group.barrier()
        return path

    def load_best(self, step: int) -> bool:
        """Give the model the weights that were kept as the best; whether they are this step's."""
        place = self._checkpoints / "best"
        try:
            manifest = verify(place, base=self._base.folder)
        except InvalidCheckpoint:
            return False
        if manifest.step != step:
            return False
        set_weights(self._model, load_weights(place, manifest), manifest)
        self.step = step
        return True

    def finish(self, done: TrainingDone, began: TrainingStarted) -> TrainingDone:
        """The final checkpoint, the curves, the card; `done.json` last."""
        artifacts = self._folder / "artifacts"
        full = msgspec.structs.replace(
            done,
            final=str(self._checkpoints / "final"),
            curves=str(artifacts / "curves.png"),
            tensorboard=str(artifacts / "tensorboard"),
            card=str(artifacts / "card.md"),
        )
        if self._writes:
            self._write_checkpoint("final", None)
            manifest = verify(self._checkpoints / "final", base=self._base.folder)
            full = msgspec.structs.replace(full, seal=manifest.seal)
            self._write_artifacts(artifacts, full, began, manifest)
            (self._folder / "done.json").write_bytes(ENCODER.encode(full))
        self._learner.process_group.barrier()
        return full

    def _write_artifacts(
        self, artifacts: Path, done: TrainingDone, began: TrainingStarted, manifest: Manifest
    ) -> None:
        draw_curves(self._steps, artifacts / "curves.png", self._spec.job_id)
        for name, lines in (("steps.jsonl", self._steps), ("evaluations.jsonl", self.evaluations)):
            (artifacts / name).write_bytes(b"".join(ENCODER.encode(each) + b"\n" for each in lines))
        with open_tensorboard(artifacts / "tensorboard") as events:
            for stepped in self._steps:
                events.write_step(stepped)
        facts = ModelCard(
            spec=self._spec,
            snapshot=from_json((artifacts / "snapshot.json").read_bytes(), Snapshot),
            began=began,
            steps=self._steps,
            kind=manifest.kind,
            created=manifest.created,
            code_version=manifest.code_version,
            checkpoint_sha256=manifest.seal,
            base_sha256=manifest.base_sha256,
            holdout_before=done.holdout_before,
            holdout_after=done.holdout_after,
            seconds=done.seconds,
            peak_rss_bytes=done.peak_rss_bytes,
            measure=_MEASURE_TEXT[done.measured_by],
            done=done,
        )
        (artifacts / "card.md").write_text(render_card(facts))

    def _write_checkpoint(self, name: str, state: TrainerState | None) -> None:
        spec = self._spec
        save_checkpoint(
            self._checkpoints,
            name,
            self._model,
            info=CheckpointInfo(
                base_model=spec.base_model,
                job_id=spec.job_id,
                step=self.step,
                created=datetime.now(UTC),
                recipe=spec.recipe,
                snapshot=spec.snapshot,
                parent=spec.parent,
            ),
            optimizer=self._learner.optimizer if state else None,
            trainer=state,
            base_folder=self._base.folder,
        )

    def _trainer_state(self, stepped: StepReport) -> TrainerState:
        head = self._learner.value_head
        return TrainerState(
            step=stepped.step,
            epoch=stepped.epoch,
            seed=self._spec.recipe.seed,
            best=self._best,
            best_step=self._best_step,
            scalars={"tokens": self._learner.tokens},
            value=head.state_dict() if head is not None else {},
        )

    def _append_line(self, name: str, line: msgspec.Struct) -> None:
        if self._writes:
            with (self._folder / name).open("ab") as lines:
                lines.write(ENCODER.encode(line) + b"\n")

    def _truncate_file(self, name: str, kind: type[S]) -> list[S]:
        """The lines of a file up to the checkpoint's step; what came after it is taken again."""
        kept = [each for each in self._read_lines(name, kind) if each.step <= self.step]
        if self._writes:
            body = b"".join(ENCODER.encode(each) + b"\n" for each in kept)
            (self._folder / name).write_bytes(body)
        return kept

    def _read_lines(self, name: str, kind: type[S]) -> list[S]:
        path = self._folder / name
        if not path.exists():
            return []
        read = json_decoder(kind)
        found = []
        for line in path.read_bytes().splitlines():
            try:
                found.append(read.decode(line))
            except msgspec.MsgspecError:  # the last line, torn by a crash
                break
        return found
