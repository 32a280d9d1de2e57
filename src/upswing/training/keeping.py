"""What does a job leave on the disk, so that another child can go on, and a person can look?"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import msgspec
from torch import nn

from upswing.adapters.bases import Base
from upswing.adapters.checkpoints.checking import verify
from upswing.adapters.checkpoints.manifest import Facts, Manifest, Refused
from upswing.adapters.checkpoints.reading import load_weights, put_weights, restore
from upswing.adapters.checkpoints.shelf import newest, prune, step_name
from upswing.adapters.checkpoints.state import TrainerState
from upswing.adapters.checkpoints.writing import save
from upswing.adapters.curves import draw
from upswing.adapters.tensorboard import board
from upswing.contracts.typed import from_json, json_decoder
from upswing.dataset.snapshot import Snapshot
from upswing.train.card import Card, text
from upswing.train.evaluation import Evaluation
from upswing.train.learner import Learner
from upswing.train.report import ENCODER, Began, Done, Stepped
from upswing.train.spec import JobSpec

S = TypeVar("S", Stepped, Evaluation)
_MEASURES = {
    "logged": "reward on held-out tasks, estimated from logged trajectories",
    "fresh": "reward on held-out tasks, of fresh attempts",
}


class Keeping:
    """The checkpoints and curves of one job."""

    def __init__(
        self, folder: Path, spec: JobSpec, base: Base, model: nn.Module, learner: Learner
    ) -> None:
        self._folder = folder
        self._checkpoints = folder / "checkpoints"
        self._spec = spec
        self._base = base
        self._model = model
        self._learner = learner
        self._curve: list[Stepped] = []
        self.evaluations: list[Evaluation] = []
        """The start policy's first, then those after steps."""
        self._best: float | None = None
        self._best_step: int | None = None
        self._writes = learner.team.rank == 0
        """Of several processes that train together, one writes."""
        self.step = 0

    def restore(self) -> int:
        """Go on from the newest whole checkpoint; how many steps are done."""
        path = newest(
            self._checkpoints, at_most_step=self._spec.last_good_step, base=self._base.folder
        )
        if path is not None:
            state = restore(path, self._model, self._learner.optimizer, base=self._base.folder)
            if self._learner.value_head is not None:
                self._learner.value_head.load_state_dict(dict(state.value))
            self.step, self._best, self._best_step = state.step, state.best, state.best_step
            self._learner.tokens = int(state.scalars.get("tokens") or 0)
        self._curve = self._cut_back("steps.jsonl", Stepped)
        self.evaluations = self._cut_back("evaluations.jsonl", Evaluation)
        return self.step

    def note(self, stepped: Stepped) -> None:
        """Remember a step."""
        self.step = stepped.step
        self._curve.append(stepped)
        self._append("steps.jsonl", stepped)

    def evaluated(self, evaluation: Evaluation) -> None:
        """Remember an evaluation."""
        self.evaluations.append(evaluation)
        self._append("evaluations.jsonl", evaluation)

    def save(self, stepped: Stepped, measured: float | None, *, best: bool) -> Path:
        """A checkpoint to go on from; the best so far is kept beside it, whatever comes."""
        if best:
            self._best, self._best_step = measured, stepped.step
        path = self._checkpoints / step_name(stepped.step)
        if self._writes:
            state = self._state(stepped)
            self._write(path.name, state)
            if best:
                self._write("best", None)
            prune(self._checkpoints, self._spec.recipe.max_checkpoints)
        self._learner.team.meet()
        return path

    def take_best(self, step: int) -> bool:
        """Give the model the weights that were kept as the best; whether they are this step's."""
        place = self._checkpoints / "best"
        try:
            manifest = verify(place, base=self._base.folder)
        except Refused:
            return False
        if manifest.step != step:
            return False
        put_weights(self._model, load_weights(place, manifest), manifest)
        self.step = step
        return True

    def finish(self, done: Done, began: Began) -> Done:
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
            self._write("final", None)
            manifest = verify(self._checkpoints / "final", base=self._base.folder)
            full = msgspec.structs.replace(full, seal=manifest.seal)
            self._write_artifacts(artifacts, full, began, manifest)
            (self._folder / "done.json").write_bytes(ENCODER.encode(full))
        self._learner.team.meet()
        return full

    def _write_artifacts(
        self, artifacts: Path, done: Done, began: Began, manifest: Manifest
    ) -> None:
        draw(self._curve, artifacts / "curves.png", self._spec.job_id)
        with board(artifacts / "tensorboard") as events:
            for stepped in self._curve:
                events.step(stepped)
        facts = Card(
            spec=self._spec,
            snapshot=from_json((artifacts / "snapshot.json").read_bytes(), Snapshot),
            began=began,
            steps=self._curve,
            kind=manifest.kind,
            created=manifest.created,
            code_version=manifest.code_version,
            checkpoint_sha256=manifest.seal,
            base_sha256=manifest.base_sha256,
            holdout_before=done.holdout_before,
            holdout_after=done.holdout_after,
            seconds=done.seconds,
            peak_rss_bytes=done.peak_rss_bytes,
            measure=_MEASURES[done.measured_by],
            done=done,
        )
        (artifacts / "card.md").write_text(text(facts))

    def _write(self, name: str, state: TrainerState | None) -> None:
        spec = self._spec
        save(
            self._checkpoints,
            name,
            self._model,
            facts=Facts(
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

    def _state(self, stepped: Stepped) -> TrainerState:
        head = self._learner.value_head
        return TrainerState(
            step=stepped.step, epoch=stepped.epoch, seed=self._spec.recipe.seed, best=self._best,
            best_step=self._best_step, scalars={"tokens": self._learner.tokens},
            value=head.state_dict() if head is not None else {},
        )  # fmt: skip

    def _append(self, name: str, line: msgspec.Struct) -> None:
        if self._writes:
            with (self._folder / name).open("ab") as lines:
                lines.write(ENCODER.encode(line) + b"\n")

    def _cut_back(self, name: str, kind: type[S]) -> list[S]:
        """The lines of a file up to the checkpoint's step; what came after it is taken again."""
        kept = [each for each in self._read(name, kind) if each.step <= self.step]
        if self._writes:
            body = b"".join(ENCODER.encode(each) + b"\n" for each in kept)
            (self._folder / name).write_bytes(body)
        return kept

    def _read(self, name: str, kind: type[S]) -> list[S]:
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
