"""How does a claimed job become a model? Gather its data, watch a child train, keep the result.

| point in time   | what is durable already                                                 |
|-----------------|-------------------------------------------------------------------------|
| claimed         | the job's row: running, ours for as long as the lease is renewed         |
| data gathered   | the snapshot's hash in the row, the samples in the job's folder          |
| while it trains | checkpoints in the folder, the newest status in the row                  |
| trained         | the final checkpoint in the folder, then where models are kept           |
| registered      | the model, what it was trained on, and `completed`, in the store         |

Whoever dies at any of these points is followed by an attempt that starts from there.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
from collections.abc import Sequence
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

import msgspec

from upswing.contracts.training import TrainingStatus
from upswing.contracts.typed import from_json, json_decoder
from upswing.dataset.sample import Sample
from upswing.dataset.snapshot import Snapshot, read_snapshot
from upswing.errors import Misuse, Rejected, Transient
from upswing.ports import Job, Renewed
from upswing.together import begin
from upswing.train.data_service import Gathered
from upswing.train.fit import fitted
from upswing.train.parts import Parts, Process, Start
from upswing.train.progress import State, Told, heard, status_of
from upswing.train.recipe import Recipe
from upswing.train.recovery import Cause, Failure, GiveUp, Retry, answer
from upswing.train.report import Began, Code, Done, Report, Saved, Stepped
from upswing.train.spec import JobSpec
from upswing.train.verdict import Exit, cause_of

log = logging.getLogger(__name__)
_RENEW_SECONDS = 2.0
_SUMS = "samples.sha256"
"""The hash of the samples: a job whose data are damaged gathers them anew."""
"""Between two looks at the row: how soon a wish to cancel is heard."""


class Attempt:
    """One attempt at one job, from claim to outcome."""

    def __init__(self, worker: str, parts: Parts, job: Job) -> None:
        self._worker = worker
        self._parts = parts
        self._job = job
        self._recipe = from_json(job.recipe, Recipe)
        self._failures = from_json(job.failures, list[Failure])
        self._home = parts.folder / f"job-{job.job_id}"  # an id may be `..`
        self._reasons: dict[str, str] = {}
        """Why each knob that nobody set has its value."""
        self._told = Told()
        self._began = asyncio.get_running_loop().time()
        self._announced = self._noted = 0.0
        self._saved_step = max((failure.saved_step for failure in self._failures), default=0)
        self._start = Start(job.request.training_config.base_model)

    async def run(self) -> None:
        """Train it; whatever goes wrong is answered by the policy."""
        try:
            end = await self._train()
            if self._told.done is not None and end.ended_by == "itself":
                await self._keep(self._told.done)
                return
        except (Rejected, Misuse) as error:
            await self._failed("DATA", str(error))
            return
        except (Transient, OSError) as error:
            await self._failed("INFRA", str(error))
            return
        except Exception as error:
            log.exception("%s broke", self._job.job_id, extra={"action": "alert"})
            await self._failed("UNKNOWN", f"{type(error).__name__}: {error}")
            return
        match end.ended_by:
            case "lost":
                log.warning("another worker has %s", self._job.job_id, extra={"action": "lost_job"})
            case "cancel":
                await self._over("cancelled")
            case _:
                await self._failed(*cause_of(self._told, end, self._parts.limits.memory_bytes))

    # ── before ───────────────────────────────────────────────────────────────────────────────

    async def _train(self) -> Exit:
        parts, job = self._parts, self._job
        self._start = await parts.registry.start_of(job.request)
        snapshot = await self._gather()
        spec = JobSpec(
            job_id=job.job_id,
            recipe=self._recipe,
            base_model=self._start.base_model,
            start=await self._fetched(self._start.path),
            behaviours=await self._behaviours(),
            snapshot=snapshot,
            parent=self._start.model_id,
            last_good_step=self._last_good_step(),
            memory_bytes=parts.limits.memory_bytes,
            threads=parts.limits.threads,
            beside=parts.limits.beside,
            processes=self._processes(),
            cache=str(parts.cache),
            worlds=dict(parts.worlds),
            cost_per_hour=parts.limits.cost_per_hour,
        )
        _write(self._home / "job.json", msgspec.json.encode(spec))
        await self._tell("running", announce=True)
        process = await parts.launch(self._home, spec)
        try:
            return await self._watch(process)
        finally:
            await process.kill()

    async def _gather(self) -> str:
        """The data of this job: what an earlier attempt gathered, unless some of it is bad or gone."""
        parts, job, home = self._parts, self._job, self._home
        known = _snapshot_in(home, job.snapshot)
        blamed = bool(self._failures and self._failures[-1].bad)
        if known is not None and not blamed and not await parts.data.erased(known):
            return known.sha256
        gathered = await parts.data.gather(
            job.request,
            self._recipe,
            ancestors=self._start.ancestors,
            drop=[each for failure in self._failures for each in failure.bad],
            now=parts.clock(),
            ages=self._start.ages,
        )
        snapshot = gathered.snapshot
        # Before a byte of it is on the disk: whoever erases a user's data finds this job.
        await parts.data.note_trained(job.job_id, snapshot)
        await asyncio.to_thread(_lay_out, home, gathered)
        await self._fit(gathered)
        await parts.jobs.plan(job.job_id, msgspec.json.encode(self._recipe), snapshot.sha256)
        return snapshot.sha256

    async def _fit(self, gathered: Gathered) -> None:
        """Give the knobs that nobody set a value, now that base and data are known."""
        if not self._recipe.unset:
            return
        parameters, full = await asyncio.to_thread(self._parts.parameters, self._start.base_model)
        trained = _comparable(gathered.samples, self._recipe)
        found = fitted(
            self._recipe,
            parameters=parameters,
            full=full if self._recipe.full is None else self._recipe.full,
            trajectories=len(trained),
            groups=len({each.group for each in trained}),
        )
        self._recipe = found.recipe
        self._reasons = dict(found.reasons)

    async def _fetched(self, path: str) -> str | None:
        """The checkpoint of a registered model, on this machine."""
        if not path:
            return None
        return str(await self._parts.keeper.fetch(path, self._parts.cache / "models"))

    async def _behaviours(self) -> dict[str, str]:
        """Checkpoints of the models that acted, for logprobs that nobody recorded."""
        found = await self._parts.registry.checkpoints(
            await asyncio.to_thread(_models_that_acted, self._home / "samples.jsonl")
        )
        folders = {name: await self._fetched(path) for name, path in found.items()}
        return {name: folder for name, folder in folders.items() if folder}

    def _last_good_step(self) -> int | None:
        """After a divergence: not from what was saved while it diverged."""
        if self._failures and self._failures[-1].cause == "CONVERGENCE":
            return self._failures[-1].saved_step
        return None

    def _processes(self) -> int:
        compute = self._job.request.training_config.compute
        if isinstance(compute, msgspec.UnsetType) or compute.distributed is not True:
            return 1
        return compute.gpu_count if isinstance(compute.gpu_count, int) and compute.gpu_count else 1

    # ── while it trains ──────────────────────────────────────────────────────────────────────

    async def _watch(self, process: Process) -> Exit:
        """Hear the child to its end; end it when it is time, silent, cancelled or no longer ours."""
        limits, loop = self._parts.limits, asyncio.get_running_loop()
        heard_at, renewed_at = loop.time(), loop.time()
        deadline = heard_at + limits.timeout.total_seconds()
        listening = begin(process.report())
        try:
            while True:
                done, _ = await asyncio.wait({listening}, timeout=1.0)
                at = loop.time()
                if done:
                    report = listening.result()
                    if report is None:
                        return Exit(await process.ended(), "itself", process.tail())
                    heard_at = at
                    await self._hear(report)
                    listening = begin(process.report())
                if at > deadline:
                    return Exit(0, "timeout")
                if at - heard_at > limits.silence.total_seconds():
                    return Exit(0, "silence")
                if process.frozen(at):
                    return Exit(0, "frozen")
                if at - renewed_at >= _RENEW_SECONDS:
                    renewed_at = at
                    if (word := await self._renew()) is not Renewed.KEPT:
                        return Exit(0, "lost" if word is Renewed.LOST else "cancel")
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    async def _renew(self) -> Renewed:
        """Say that the job is still ours; a store that is away is no reason to stop training."""
        parts = self._parts
        until = parts.clock() + parts.limits.lease
        try:
            return await parts.jobs.renew(self._job.job_id, self._worker, until)
        except Transient as error:
            log.warning("%s", error, extra={"action": "renew"})
            return Renewed.KEPT

    async def _hear(self, report: Report) -> None:
        self._told = heard(self._told, report)
        match report:
            case Saved():
                self._saved_step = report.step
            case Stepped():
                at = asyncio.get_running_loop().time()
                due = at - self._announced >= self._parts.limits.status_interval.total_seconds()
                if due or at - self._noted >= 1.0:
                    with contextlib.suppress(Transient):  # the next step tells it again
                        await self._tell("running", announce=due)
            case Began():
                await self._tell("running", announce=True)
            case _:
                pass

    # ── afterwards ───────────────────────────────────────────────────────────────────────────

    async def _keep(self, done: Done) -> None:
        """Put the model where models are kept, then into the registry, then say so."""
        parts, job = self._parts, self._job
        path = await parts.keeper.keep(self._home, self._home.name)
        kept = msgspec.structs.replace(
            done, final=f"{path}/final", curves=f"{path}/artifacts/curves.png",
            tensorboard=f"{path}/artifacts/tensorboard", card=f"{path}/artifacts/card.md",
        )  # fmt: skip
        self._told = heard(self._told, kept)
        snapshot = from_json((self._home / "artifacts" / "snapshot.json").read_bytes(), Snapshot)
        model_id = await parts.registry.register(
            job_id=job.job_id, base_model=self._start.base_model, parent=self._start.model_id or None,
            snapshot=snapshot.sha256, path=kept.final, card=kept.card, samples=done.samples,
            final_reward=done.holdout_after, seal=done.seal,
            now=parts.clock(),
        )  # fmt: skip
        await self._over("completed", notes={"model_id": model_id})

    async def _failed(self, cause: Cause, message: str) -> None:
        """Ask the policy, and do as it says."""
        parts, told = self._parts, self._told
        failure = Failure(
            cause, message, parts.clock(), self._saved_step,
            told.failed.bad if told.failed else [], self._seconds(),
        )  # fmt: skip
        failures = [*self._failures, failure]
        inputs = {"recipe": self._recipe, "failures": failures, "wait": parts.limits.retry}
        word = answer(self._recipe, failures, parts.clock(), parts.limits.retry)
        await parts.journal("recovery", word.sentence, inputs, word)
        log.warning("%s: %s", self._job.job_id, word.sentence, extra={"action": "train_failed"})
        if word.alert:
            log.error("training %s needs a look: %s", self._job.job_id, word.sentence, extra={"action": "alert"})  # fmt: skip
        code: Code = "INFRA" if cause == "LOST" else cause
        error = (code, message, told.failed.traceback if told.failed else "")
        match word:
            case Retry():
                status = self._status("queued", error, {"recovery": word.sentence})
                await parts.jobs.requeue(
                    self._job.job_id,
                    recipe=msgspec.json.encode(word.recipe),
                    failures=msgspec.json.encode(failures),
                    not_before=word.not_before,
                    status=status,
                    worker=self._worker,
                )
            case GiveUp():
                self._failures = failures
                await self._over("failed", error, {"recovery": word.sentence})

    async def _over(
        self,
        state: State,
        error: tuple[Code, str, str] | None = None,
        notes: dict[str, str] | None = None,
    ) -> None:
        """The job has ended: say so, then leave no training text behind."""
        parts, job = self._parts, self._job
        status = self._status(state, error, notes)
        failures = msgspec.json.encode(self._failures)
        await parts.jobs.finish(
            job.job_id, state, status, failures, parts.clock(), worker=self._worker
        )
        log.info("%s is %s", job.job_id, state, extra={"action": f"train_{state}"})
        parts.finished(state, self._spent(), self._told.began.examples if self._told.began else 0)
        await asyncio.to_thread(_clean, self._home, keep_words=state == "failed")

    # ── saying how it goes ───────────────────────────────────────────────────────────────────

    async def _tell(self, state: State, *, announce: bool) -> None:
        at = asyncio.get_running_loop().time()
        self._noted = at
        if announce:
            self._announced = at
        await self._parts.jobs.note(
            self._job.job_id, self._status(state), announce=announce, worker=self._worker
        )
        if announce:
            self._parts.changed()

    def _status(
        self,
        state: State,
        error: tuple[Code, str, str] | None = None,
        notes: dict[str, str] | None = None,
    ) -> TrainingStatus:
        return status_of(
            self._job.job_id, state, self._told, now=self._parts.clock(), seconds=self._spent(),
            cost_per_hour=self._parts.limits.cost_per_hour, error=error,
            notes={"attempt": self._job.attempt, "settings": self._settings(), **(notes or {})},
        )  # fmt: skip

    def _settings(self) -> dict[str, Any]:
        """The knobs that matter most, and why they were chosen where nobody set them."""
        recipe = self._recipe
        return {
            "learning_rate": recipe.learning_rate,
            "batch_size": recipe.batch_size,
            "epochs": recipe.epochs,
            "why": self._reasons,
        }

    def _seconds(self) -> float:
        return asyncio.get_running_loop().time() - self._began

    def _spent(self) -> float:
        return self._seconds() + sum(failure.seconds for failure in self._failures)


def _comparable(samples: Sequence[Sample], recipe: Recipe) -> list[Sample]:
    """The samples that bring something: for algorithms that compare, those of groups that differ."""
    trained = [sample for sample in samples if not sample.held_out]
    if recipe.algorithm not in ("grpo", "rloo", "dpo"):
        return trained
    rewards: dict[str, list[float]] = {}
    for each in trained:
        rewards.setdefault(each.group, []).append(each.reward)
    useful = {group for group, given in rewards.items() if max(given) > min(given)}
    return [each for each in trained if each.group in useful] or trained


class _Acted(msgspec.Struct):
    """Of a sample, only who acted and whether that was recorded."""

    model: str
    on_policy: bool = False


def _models_that_acted(samples: Path) -> set[str]:
    """The models whose logprobs nobody recorded."""
    read = json_decoder(_Acted)
    with samples.open("rb") as lines:
        found = (read.decode(line) for line in lines)
        return {sample.model for sample in found if not sample.on_policy}


def _write(path: Path, body: bytes) -> None:
    """Whole or not at all."""
    fresh = path.with_name(path.name + ".new")
    fresh.write_bytes(body)
    fresh.replace(path)


def _snapshot_in(home: Path, wanted: str | None) -> Snapshot | None:
    """The snapshot whose samples lie in the folder, if it is this one."""
    try:
        known = read_snapshot((home / "artifacts" / "snapshot.json").read_bytes())
        sums = (home / _SUMS).read_text()
        sound = sums == _sha256(home / "samples.jsonl")
    except (OSError, Rejected, UnicodeDecodeError):
        return None
    return known if known.sha256 == wanted and sound else None


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _lay_out(home: Path, gathered: Gathered) -> None:
    """New data: nothing that was learned from other data is gone on from."""
    shutil.rmtree(home, ignore_errors=True)
    (home / "artifacts").mkdir(parents=True)
    lines = b"".join(msgspec.json.encode(sample) + b"\n" for sample in gathered.samples)
    _write(home / "samples.jsonl", lines)
    _write(home / _SUMS, sha256(lines).hexdigest().encode())
    _write(home / "artifacts" / "snapshot.json", msgspec.json.encode(gathered.snapshot))


def _clean(home: Path, *, keep_words: bool) -> None:
    """Remove the job's files; of a failed one, what it said stays for whoever looks into it."""
    if not keep_words:
        shutil.rmtree(home, ignore_errors=True)
        return
    for name in ("samples.jsonl", _SUMS, "logprobs.safetensors"):
        (home / name).unlink(missing_ok=True)
    shutil.rmtree(home / "checkpoints", ignore_errors=True)
