"""How does a claimed job become a model? Gather its data, supervise the child, store the result.

| point in time   | what is durable already                                                 |
|-----------------|-------------------------------------------------------------------------|
| claimed         | the job's row: running, ours for as long as the lease is renewed         |
| data gathered   | the snapshot's hash in the row, the samples in the job's folder          |
| while it trains | checkpoints in the folder, the newest status in the row                  |
| trained         | the final checkpoint in the folder, then in the checkpoint store         |
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
from upswing.infra.tasks import start_task
from upswing.logs import log_context
from upswing.records import Job, Renewed
from upswing.train.core.exit_verdict import ProcessExit, failure_cause
from upswing.train.core.fit import fit_recipe
from upswing.train.core.progress import JobProgress, JobState, apply_report, training_status
from upswing.train.core.recipe import Recipe
from upswing.train.core.recovery import Cause, Failure, GiveUp, Retry, decide_recovery
from upswing.train.core.report import (
    CheckpointSaved,
    FailureCode,
    Report,
    StepReport,
    TrainingDone,
    TrainingStarted,
)
from upswing.train.core.spec import JobSpec
from upswing.train.jobs.child_process import TrainingProcess
from upswing.train.jobs.data import JobDataset
from upswing.train.jobs.dependencies import JobDependencies
from upswing.train.jobs.registry import TrainingStart

log = logging.getLogger(__name__)
_RENEW_SECONDS = 2.0
"""Between two renewals of the lease: how soon a cancellation takes effect."""
_SAMPLES_SHA256 = "samples.sha256"
"""The hash of the samples: a job whose data are damaged gathers them anew."""


class TrainingAttempt:
    """One attempt at one job, from claim to outcome."""

    def __init__(self, worker: str, dependencies: JobDependencies, job: Job) -> None:
        self._worker = worker
        self._dependencies = dependencies
        self._job = job
        self._recipe = from_json(job.recipe, Recipe)
        self._failures = from_json(job.failures, list[Failure])
        self._folder = dependencies.jobs_folder / f"job-{job.job_id}"  # an id may be `..`
        self._reasons: dict[str, str] = {}
        """Why each knob that nobody set has its value."""
        self._progress = JobProgress()
        self._started_at = asyncio.get_running_loop().time()
        self._announced_at = self._saved_at = 0.0
        self._saved_step = max((failure.saved_step for failure in self._failures), default=0)
        self._start = TrainingStart(job.request.training_config.base_model)

    async def run(self) -> None:
        """Train it; every failure goes to the recovery policy."""
        with log_context(job=self._job.job_id):
            await self._run_and_recover()

    async def _run_and_recover(self) -> None:
        try:
            end = await self._run_training()
            if self._progress.done is not None and end.ended_by == "itself":
                await self._store_model(self._progress.done)
                return
        except (Rejected, Misuse) as error:
            await self._handle_failure("DATA", str(error))
            return
        except (Transient, OSError) as error:
            await self._handle_failure("INFRA", str(error))
            return
        except Exception as error:
            log.exception(
                "%s broke",
                self._job.job_id,
                extra={"action": "alert", "reason": "training_broke", "job": self._job.job_id},
            )
            await self._handle_failure("UNKNOWN", f"{type(error).__name__}: {error}")
            return
        match end.ended_by:
            case "lost":
                log.warning("another worker has %s", self._job.job_id, extra={"action": "lost_job"})
            case "cancel":
                await self._finish_job("cancelled")
            case _:
                await self._handle_failure(
                    *failure_cause(self._progress, end, self._dependencies.limits.memory_bytes)
                )

    # ── before ───────────────────────────────────────────────────────────────────────────────

    async def _run_training(self) -> ProcessExit:
        dependencies, job = self._dependencies, self._job
        self._start = await dependencies.registry.resolve_start(job.request)
        snapshot = await self._prepare_data()
        spec = JobSpec(
            job_id=job.job_id,
            recipe=self._recipe,
            base_model=self._start.base_model,
            start=await self._fetch_checkpoint(self._start.path),
            behaviours=await self._behaviour_checkpoints(),
            snapshot=snapshot,
            parent=self._start.model_id,
            last_good_step=self._last_good_step(),
            memory_bytes=dependencies.limits.memory_bytes,
            threads=dependencies.limits.threads,
            shares_cores=dependencies.limits.shares_cores,
            processes=self._process_count(),
            cache=str(dependencies.base_cache),
            worlds=dict(dependencies.worlds),
            cost_per_hour=dependencies.limits.cost_per_hour,
        )
        _write_atomically(self._folder / "job.json", msgspec.json.encode(spec))
        await self._save_status("running", announce=True)
        process = await dependencies.launch(self._folder, spec)
        try:
            return await self._supervise_process(process)
        finally:
            dependencies.on_progress(self._worker, None)
            await process.kill()

    async def _prepare_data(self) -> str:
        """The data of this job: what an earlier attempt gathered, unless some of it is bad or gone."""
        dependencies, job, home = self._dependencies, self._job, self._folder
        known = _load_snapshot(home, job.snapshot)
        blamed = bool(self._failures and self._failures[-1].bad)
        if known is not None and not blamed and not await dependencies.data.contains_erased(known):
            return known.sha256
        gathered = await dependencies.data.gather(
            job.request,
            self._recipe,
            ancestor_jobs=self._start.ancestor_jobs,
            excluded_ids=[each for failure in self._failures for each in failure.bad],
            now=dependencies.clock(),
            policy_ages=self._start.policy_ages,
        )
        snapshot = gathered.snapshot
        # Before a byte of it is on the disk: whoever erases a user's data finds this job.
        await dependencies.data.record_trained(job.job_id, snapshot)
        await asyncio.to_thread(_write_job_data, home, gathered)
        await self._fit_recipe(gathered)
        await dependencies.jobs.save_plan(
            job.job_id, msgspec.json.encode(self._recipe), snapshot.sha256
        )
        return snapshot.sha256

    async def _fit_recipe(self, dataset: JobDataset) -> None:
        """Give the knobs that nobody set a value, now that base and data are known."""
        if not self._recipe.unset:
            return
        parameters, full = await asyncio.to_thread(
            self._dependencies.base_parameters, self._start.base_model
        )
        trained = _samples_with_signal(dataset.samples, self._recipe)
        found = fit_recipe(
            self._recipe,
            parameters=parameters,
            full=full if self._recipe.full is None else self._recipe.full,
            trajectories=len(trained),
            groups=len({each.group for each in trained}),
        )
        self._recipe = found.recipe
        self._reasons = dict(found.reasons)

    async def _fetch_checkpoint(self, path: str) -> str | None:
        """The checkpoint of a registered model, on this machine."""
        if not path:
            return None
        return str(
            await self._dependencies.checkpoint_store.fetch(
                path, self._dependencies.base_cache / "models"
            )
        )

    async def _behaviour_checkpoints(self) -> dict[str, str]:
        """Checkpoints of the models that acted, for logprobs that nobody recorded."""
        found = await self._dependencies.registry.checkpoint_paths(
            await asyncio.to_thread(_models_without_logprobs, self._folder / "samples.jsonl")
        )
        folders = {name: await self._fetch_checkpoint(path) for name, path in found.items()}
        return {name: folder for name, folder in folders.items() if folder}

    def _last_good_step(self) -> int | None:
        """After a divergence: not from what was saved while it diverged."""
        if self._failures and self._failures[-1].cause == "CONVERGENCE":
            return self._failures[-1].saved_step
        return None

    def _process_count(self) -> int:
        compute = self._job.request.training_config.compute
        if isinstance(compute, msgspec.UnsetType) or compute.distributed is not True:
            return 1
        return compute.gpu_count if isinstance(compute.gpu_count, int) and compute.gpu_count else 1

    # ── while it trains ──────────────────────────────────────────────────────────────────────

    async def _supervise_process(self, process: TrainingProcess) -> ProcessExit:
        """Read the child's reports to its end; kill it on timeout, silence, cancellation or a lost lease."""
        limits, loop = self._dependencies.limits, asyncio.get_running_loop()
        reported_at, renewed_at = loop.time(), loop.time()
        deadline = reported_at + limits.timeout.total_seconds()
        reading = start_task(process.next_report())
        try:
            while True:
                done, _ = await asyncio.wait({reading}, timeout=1.0)
                at = loop.time()
                if done:
                    report = reading.result()
                    if report is None:
                        return ProcessExit(await process.wait(), "itself", process.log_tail())
                    reported_at = at
                    await self._on_report(report)
                    reading = start_task(process.next_report())
                if at > deadline:
                    return ProcessExit(0, "timeout")
                if at - reported_at > limits.heartbeat_timeout.total_seconds():
                    return ProcessExit(0, "silence")
                if process.is_frozen(at):
                    return ProcessExit(0, "frozen")
                if at - renewed_at >= _RENEW_SECONDS:
                    renewed_at = at
                    if (renewed := await self._renew_lease()) is not Renewed.KEPT:
                        return ProcessExit(0, "lost" if renewed is Renewed.LOST else "cancel")
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _renew_lease(self) -> Renewed:
        """Renew the lease; an unavailable store is no reason to stop training."""
        dependencies = self._dependencies
        until = dependencies.clock() + dependencies.limits.lease
        try:
            return await dependencies.jobs.renew(self._job.job_id, self._worker, until)
        except Transient as error:
            log.warning("%s", error, extra={"action": "renew"})
            return Renewed.KEPT

    async def _on_report(self, report: Report) -> None:
        self._progress = apply_report(self._progress, report)
        self._dependencies.on_progress(self._worker, self._progress)
        match report:
            case CheckpointSaved():
                self._saved_step = report.step
            case StepReport():
                at = asyncio.get_running_loop().time()
                due = (
                    at - self._announced_at
                    >= self._dependencies.limits.status_interval.total_seconds()
                )
                if due or at - self._saved_at >= 1.0:
                    with contextlib.suppress(Transient):  # the next step saves it again
                        await self._save_status("running", announce=due)
            case TrainingStarted():
                await self._save_status("running", announce=True)
            case _:
                pass

    # ── afterwards ───────────────────────────────────────────────────────────────────────────

    async def _store_model(self, done: TrainingDone) -> None:
        """Upload the model, then register it, then publish the status."""
        dependencies, job = self._dependencies, self._job
        path = await dependencies.checkpoint_store.upload_job(self._folder, self._folder.name)
        kept = msgspec.structs.replace(
            done,
            final=f"{path}/final",
            curves=f"{path}/artifacts/curves.png",
            tensorboard=f"{path}/artifacts/tensorboard",
            card=f"{path}/artifacts/card.md",
        )
        self._progress = apply_report(self._progress, kept)
        snapshot = from_json((self._folder / "artifacts" / "snapshot.json").read_bytes(), Snapshot)
        model_id = await dependencies.registry.register(
            job_id=job.job_id,
            base_model=self._start.base_model,
            parent=self._start.model_id or None,
            snapshot=snapshot.sha256,
            path=kept.final,
            card=kept.card,
            samples=done.samples,
            final_reward=done.holdout_after,
            seal=done.seal,
            now=dependencies.clock(),
        )
        await self._finish_job("completed", notes={"model_id": model_id})

    async def _handle_failure(self, cause: Cause, message: str) -> None:
        """Ask the recovery policy, and carry out its decision."""
        dependencies, progress = self._dependencies, self._progress
        failure = Failure(
            cause,
            message,
            dependencies.clock(),
            self._saved_step,
            progress.failed.bad if progress.failed else [],
            self._attempt_seconds(),
        )
        failures = [*self._failures, failure]
        inputs = {
            "recipe": self._recipe,
            "failures": failures,
            "wait": dependencies.limits.retry_delay,
        }
        decision = decide_recovery(
            self._recipe, failures, dependencies.clock(), dependencies.limits.retry_delay
        )
        await dependencies.record_decision(
            self._job.job_id, "recovery", decision.sentence, inputs, decision
        )
        log.warning("%s: %s", self._job.job_id, decision.sentence, extra={"action": "train_failed"})
        if decision.alert:
            log.error(
                "training %s needs attention: %s",
                self._job.job_id,
                decision.sentence,
                extra={"action": "alert", "reason": "training_attention", "job": self._job.job_id},
            )
        code: FailureCode = "INFRA" if cause == "LOST" else cause
        error = (code, message, progress.failed.traceback if progress.failed else "")
        match decision:
            case Retry():
                status = self._build_status("queued", error, {"recovery": decision.sentence})
                await dependencies.jobs.requeue(
                    self._job.job_id,
                    recipe=msgspec.json.encode(decision.recipe),
                    failures=msgspec.json.encode(failures),
                    not_before=decision.not_before,
                    status=status,
                    worker=self._worker,
                )
            case GiveUp():
                self._failures = failures
                await self._finish_job("failed", error, {"recovery": decision.sentence})

    async def _finish_job(
        self,
        state: JobState,
        error: tuple[FailureCode, str, str] | None = None,
        notes: dict[str, str] | None = None,
    ) -> None:
        """The job has ended: publish the status, then delete all training text."""
        dependencies, job = self._dependencies, self._job
        status = self._build_status(state, error, notes)
        failures = msgspec.json.encode(self._failures)
        await dependencies.jobs.finish(
            job.job_id, state, status, failures, dependencies.clock(), worker=self._worker
        )
        log.info("%s is %s", job.job_id, state, extra={"action": f"train_{state}"})
        dependencies.on_finished(
            state,
            self._total_seconds(),
            self._progress.began.examples if self._progress.began else 0,
        )
        await asyncio.to_thread(_remove_job_files, self._folder, keep_logs=state == "failed")

    # ── status ───────────────────────────────────────────────────────────────────

    async def _save_status(self, state: JobState, *, announce: bool) -> None:
        at = asyncio.get_running_loop().time()
        self._saved_at = at
        if announce:
            self._announced_at = at
        await self._dependencies.jobs.save_status(
            self._job.job_id, self._build_status(state), announce=announce, worker=self._worker
        )
        if announce:
            self._dependencies.on_change()

    def _build_status(
        self,
        state: JobState,
        error: tuple[FailureCode, str, str] | None = None,
        notes: dict[str, str] | None = None,
    ) -> TrainingStatus:
        return training_status(
            self._job.job_id,
            state,
            self._progress,
            now=self._dependencies.clock(),
            seconds=self._total_seconds(),
            cost_per_hour=self._dependencies.limits.cost_per_hour,
            error=error,
            notes={
                "attempt": self._job.attempt,
                "settings": self._settings_summary(),
                **(notes or {}),
            },
        )

    def _settings_summary(self) -> dict[str, Any]:
        """The knobs that matter most, and why they were chosen where nobody set them."""
        recipe = self._recipe
        return {
            "learning_rate": recipe.learning_rate,
            "batch_size": recipe.batch_size,
            "epochs": recipe.epochs,
            "why": self._reasons,
        }

    def _attempt_seconds(self) -> float:
        return asyncio.get_running_loop().time() - self._started_at

    def _total_seconds(self) -> float:
        return self._attempt_seconds() + sum(failure.seconds for failure in self._failures)


def _samples_with_signal(samples: Sequence[Sample], recipe: Recipe) -> list[Sample]:
    """The samples with a learning signal: for algorithms that compare, those of groups that differ."""
    trained = [sample for sample in samples if not sample.held_out]
    if recipe.algorithm not in ("grpo", "rloo", "dpo"):
        return trained
    rewards: dict[str, list[float]] = {}
    for each in trained:
        rewards.setdefault(each.group, []).append(each.reward)
    useful = {group for group, given in rewards.items() if max(given) > min(given)}
    return [each for each in trained if each.group in useful] or trained


class _SampleOrigin(msgspec.Struct):
    """Of a sample, only the model that acted and whether its tokens were recorded."""

    model: str
    on_policy: bool = False


def _models_without_logprobs(samples_path: Path) -> set[str]:
    """The models whose logprobs nobody recorded."""
    read = json_decoder(_SampleOrigin)
    with samples_path.open("rb") as lines:
        found = (read.decode(line) for line in lines)
        return {sample.model for sample in found if not sample.on_policy}


def _write_atomically(path: Path, body: bytes) -> None:
    """Completely or not at all."""
    fresh = path.with_name(path.name + ".new")
    fresh.write_bytes(body)
    fresh.replace(path)


def _load_snapshot(folder: Path, expected_sha256: str | None) -> Snapshot | None:
    """The snapshot whose samples lie in the folder, if it is this one."""
    try:
        known = read_snapshot((folder / "artifacts" / "snapshot.json").read_bytes())
        sums = (folder / _SAMPLES_SHA256).read_text()
        sound = sums == _file_sha256(folder / "samples.jsonl")
    except (OSError, Rejected, UnicodeDecodeError):
        return None
    return known if known.sha256 == expected_sha256 and sound else None


def _file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _write_job_data(folder: Path, dataset: JobDataset) -> None:
    """Start an empty folder with new data: nothing learned from other data is resumed."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "artifacts").mkdir(parents=True)
    lines = b"".join(msgspec.json.encode(sample) + b"\n" for sample in dataset.samples)
    _write_atomically(folder / "samples.jsonl", lines)
    _write_atomically(folder / _SAMPLES_SHA256, sha256(lines).hexdigest().encode())
    _write_atomically(folder / "artifacts" / "snapshot.json", msgspec.json.encode(dataset.snapshot))


def _remove_job_files(folder: Path, *, keep_logs: bool) -> None:
    """Remove the job's files; the logs of a failed job stay for diagnosis."""
    if not keep_logs:
        shutil.rmtree(folder, ignore_errors=True)
        return
    for name in ("samples.jsonl", _SAMPLES_SHA256, "logprobs.safetensors"):
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)
