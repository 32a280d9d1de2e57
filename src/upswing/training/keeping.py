"""What does a job leave on the disk, so that another child can go on, and a person can look?"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import msgspec
from torch import nn

from upswing.adapters.bases import Base
from upswing.adapters.checkpoints.checking import verify
from upswing.adapters.checkpoints.manifest import Facts
from upswing.adapters.checkpoints.reading import restore
from upswing.adapters.checkpoints.shelf import newest, prune, step_name
from upswing.adapters.checkpoints.state import TrainerState
from upswing.adapters.checkpoints.writing import save
from upswing.adapters.curves import draw
from upswing.adapters.tensorboard import board
from upswing.dataset.snapshot import Snapshot
from upswing.train.card import Card, text
from upswing.train.learner import Learner
from upswing.train.report import ENCODER, Began, Done, Stepped
from upswing.train.spec import JobSpec


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
        self._curve = [each for each in self._read_curve() if each.step <= self.step]
        if self._writes:
            body = b"".join(ENCODER.encode(each) + b"\n" for each in self._curve)
            (self._folder / "steps.jsonl").write_bytes(body)
        return self.step

    def note(self, stepped: Stepped) -> None:
        """Remember a step."""
        self.step = stepped.step
        self._curve.append(stepped)
        if self._writes:
            with (self._folder / "steps.jsonl").open("ab") as lines:
                lines.write(ENCODER.encode(stepped) + b"\n")

    def save(self, stepped: Stepped, measured: float | None) -> tuple[Path, bool]:
        """A checkpoint to go on from; and whether it is the best so far."""
        best = measured is not None and (self._best is None or measured > self._best)
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
        return path, best

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
            self._write_artifacts(artifacts, full, began)
            (self._folder / "done.json").write_bytes(ENCODER.encode(full))
        self._learner.team.meet()
        return full

    def _write_artifacts(self, artifacts: Path, done: Done, began: Began) -> None:
        draw(self._curve, artifacts / "curves.png", self._spec.job_id)
        with board(artifacts / "tensorboard") as events:
            for stepped in self._curve:
                events.step(stepped)
        manifest = verify(self._checkpoints / "final", base=self._base.folder)
        facts = Card(
            spec=self._spec,
            snapshot=msgspec.json.decode((artifacts / "snapshot.json").read_bytes(), type=Snapshot),
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
            measure="reward on held-out tasks, estimated from logged trajectories",
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

    def _read_curve(self) -> list[Stepped]:
        path = self._folder / "steps.jsonl"
        if not path.exists():
            return []
        read = msgspec.json.Decoder(Stepped)
        found = []
        for line in path.read_bytes().splitlines():
            try:
                found.append(read.decode(line))
            except msgspec.MsgspecError:  # the last line, torn by a crash
                break
        return found
