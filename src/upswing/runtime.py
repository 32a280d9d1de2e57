"""How do the parts become a loop? The one place with a clock, fresh ids and open sockets."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import secrets
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from prometheus_client import CollectorRegistry, disable_created_metrics

from upswing.adapters.archive import Archive
from upswing.adapters.bases import check
from upswing.adapters.clock import SteadyClock
from upswing.adapters.gateway_process import GatewayChild, Told
from upswing.adapters.nats.bus import Bus, redacted_url
from upswing.adapters.nats.durability import ask, tell
from upswing.adapters.nats.enquiries import answer_enquiries
from upswing.adapters.nats.permissions import OPERATOR
from upswing.adapters.nats.server import EmbeddedServer, make_folder
from upswing.adapters.nats.traffic import make_buckets
from upswing.adapters.sql.datasets import DataSets
from upswing.adapters.sql.decisions import Decisions
from upswing.adapters.sql.episodes import Episodes
from upswing.adapters.sql.inspection import Inspection
from upswing.adapters.sql.jobs import Jobs
from upswing.adapters.sql.keys import OPERATOR_ID, Keys
from upswing.adapters.sql.mark import Marker
from upswing.adapters.sql.models import Models
from upswing.adapters.sql.revoked import Revoked
from upswing.adapters.sql.signals import SignalReader
from upswing.adapters.sql.store import open_store
from upswing.adapters.sql.task_stats import TaskStatsReader
from upswing.adapters.sql.users import Users
from upswing.aside import AsideMetrics, Burial
from upswing.collect.collector_service import Collector
from upswing.collect.look import refusal
from upswing.collect.metrics import CollectMetrics
from upswing.collect.service import Intake
from upswing.collect.steps_service import StepwiseDoor
from upswing.config import Settings, Surroundings, registered_worlds
from upswing.contracts.backend import is_remote
from upswing.contracts.topics import (
    DEAD_GATEWAY,
    DEADS,
    FEEDBACK,
    GATEWAY_FEEDBACK,
    GATEWAY_TRAJECTORY,
    ROLES,
    STATUS_ENQUIRY,
    STORED,
    TRAINING,
    TRAINING_REQUEST,
    TRAJECTORY,
    consumer_of,
    topic_on,
)
from upswing.errors import Damaged, Misuse, Transient
from upswing.front import Front
from upswing.http.curriculum import CurriculumRoutes
from upswing.http.deployment import Deployment
from upswing.http.doors import Doors
from upswing.http.judging import Judging
from upswing.http.operations import Operations
from upswing.http.training import Training
from upswing.http.validation import Validation
from upswing.letters import Letters
from upswing.looking import Looking, Takers, make_redactor
from upswing.outbox import Relay
from upswing.redact import Redactor
from upswing.reward.fall import fall_of
from upswing.reward.influence import fair_mean
from upswing.running import Running, known_secrets, read_secrets, renew_secrets, write_private
from upswing.scoring import Scoring
from upswing.shipping import Shipping, can_serve
from upswing.together import begin, end, patiently
from upswing.train.data_service import Data
from upswing.train.metrics import TrainMetrics
from upswing.train.requests_service import Requests
from upswing.train.service import Desk, Ways
from upswing.train.wish import check_knobs
from upswing.trigger.decide import untrainable
from upswing.trigger.policy import Policy, policy_of
from upswing.trigger.service import Trigger
from upswing.upkeep import Upkeep
from upswing.workshop import Workshop
from upswing.worlds.known import place_of

log = logging.getLogger(__name__)
WEAK_KEY = 20
"""Characters below which a key of the operator's own choice is refused on a public address."""


def _where_trained(policy: Policy, settings: Settings) -> Policy:
    """A base at a server of the user's own is trained here only if its weights are here, too."""
    base = policy.defaults.base_model
    if settings.serve.url is None or base is None:
        return policy
    try:
        check(base)
    except Misuse:
        return replace(policy, rules=replace(policy.rules, elsewhere=True))
    return policy


_OWN_KEYS = (
    (OPERATOR_ID, "made at first start", "operator", "key"),
    ("gateway", "the loop's own gateway", "gateway", "gateway_loop_key"),
)
"""Id, name and scope in the table of keys, and the entry in `secrets.json`."""


now = SteadyClock()
"""The clock. Everything else is told the time."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen."""

    host: str = "127.0.0.1"
    port: int = 8100
    gateway_port: int | None = 3000
    """None: no gateway and no model server; the loop records and trains."""
    nats_port: int = 0


def _admin_token(secret: Mapping[str, str]) -> str:
    """What our gateway takes as the admin's, in its own order."""
    return os.environ.get("TENSORZERO_ADMIN_TOKEN", "").strip() or secret["admin_token"]


def _new_keys(lost: bool, renewed: Sequence[str]) -> tuple[str, ...]:
    """Why keys are others than at the last start, and what to do."""
    show = "`upswing info --show-secrets` shows the new ones"
    if renewed:
        told = "%s in secrets.json was revoked, so another was made; " + show
        return told, " and ".join(f"`{name}`" for name in renewed)
    why = "was missing" if lost else "is not the one of the last start"
    told = "secrets.json %s: all of the loop's own keys are new, and whoever asks with an old one gets 401; "
    return told + show, why


class Loop:
    """The whole loop in one process."""

    def __init__(
        self, folder: Path, settings: Settings, surroundings: Surroundings, address: Address,
        *, clock: Callable[[], datetime] = now, new_id: Callable[[], UUID] = uuid4,
        redactor: Redactor | None = None, worlds: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        """`worlds` are those whose held-out tasks validation knows; None: our own."""
        self.folder = folder
        self._settings = settings
        self._surroundings = surroundings
        self._address = address
        self._clock = clock
        self._new_id = new_id
        self._worlds = worlds
        self.redactor = redactor or make_redactor(settings)
        self.policy = _where_trained(policy_of(settings, surroundings), settings)
        self._places = registered_worlds(settings)
        check_knobs(settings.train.recipe, partial(place_of, registered=self._places))
        self._in_process = redactor is not None
        self._exits = contextlib.AsyncExitStack()
        self._tasks: list[asyncio.Task[None]] = []
        self._failed = asyncio.Event()
        self.server: EmbeddedServer | None = None
        self.shipping: Shipping | None = None
        self._step = "the store"

    def waiting_for(self) -> str:
        """What has to come before a model answers here, as far as we know."""
        model = self.shipping.waiting_for() if self.shipping else ""
        return " and ".join(filter(None, (self._step, model)))

    async def start(self) -> Running:
        """Bring everything up, in the order in which things depend on each other."""
        make_folder(self.folder)
        await self._exits.__aenter__()
        try:
            return await self._start()
        except BaseException:
            await self.stop()
            raise

    async def _start(self) -> Running:
        known = known_secrets(self.folder)
        if self._surroundings.api_key:
            self._refuse_weak_key(self._surroundings.api_key)
        self.store = open_store(self.folder, self._surroundings.database_url)
        self._exits.callback(self.store.close)
        secret = read_secrets(self.folder, dict(known))
        self._refuse_weak_key(self._surroundings.api_key or secret["key"])
        await self._inspect()
        await self.store.prepare()
        await self._keep_time()
        self.users = Users(self.store.database)
        self.keys = Keys(self.store.database, Revoked(self.folder))
        await self.users.load()
        secret = await self._know_keys(secret, lost=not known)
        self._prepare_burials()
        self._step = "the message bus"
        nats_urls = await self._start_bus(secret)
        self._step = "the workers that redact and check messages"
        await self._wire()
        http_url = await self._serve()
        self._step = "the gateway's process"
        gateway_url = await self._open_gateway(http_url, secret["gateway_loop_key"], nats_urls)
        running = Running(
            os.getpid(),
            http_url,
            gateway_url,
            nats_urls.get(OPERATOR, ""),
            nats_urls,
            self._surroundings.api_key or secret["key"],
            str(self.folder),
            secret["gateway_key"] if gateway_url else None,
            _admin_token(secret) if gateway_url else None,
        )
        self._announce(running)
        self._step = ""
        return running

    async def _inspect(self) -> None:
        """A damaged store is not written to; where it is too large to be looked through now, it is later."""
        self._inspection: Inspection | None = None
        if self.store.folder is not None:
            self._inspection = Inspection(self.folder, self.store.database)
            await self._inspection.begin()

    async def _know_keys(self, secret: dict[str, str], *, lost: bool) -> dict[str, str]:
        """Our own keys, as `secrets.json` and the environment say them now; those that were revoked are made anew."""
        at, given = self._clock(), self._surroundings.api_key
        await self.keys.load()
        await self.keys.write_down_revoked()
        wanted = {"gateway_loop_key"} | ({"key"} if not given else set())
        if dead := sorted(name for name in wanted if self.keys.was_revoked(secret[name])):
            secret = renew_secrets(self.folder, dead)
        changed = [
            await self.keys.own(key_id, name, scope, secret[entry], at)
            for key_id, name, scope, entry in _OWN_KEYS
        ]
        await self.keys.operator(f"env-{self._new_id()}", secret["key"], given, at)
        if any(changed):
            log.warning(*_new_keys(lost, dead), extra={"action": "keys_changed"})
        return secret

    def _prepare_burials(self) -> None:
        """What any part cannot read becomes a dead letter, a count and a word in the log."""
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self._aside_metrics = AsideMetrics(self.registry)
        aside = self.store.database.aside
        aside.count = self._aside_metrics.row
        self.burial = Burial(
            aside, self.store, lambda raw, error: refusal(raw, error, self.redactor),
            clock=self._clock, changed=self._wake_relay,
        )  # fmt: skip

    def _wake_relay(self) -> None:
        self.relay.wake()

    def now(self) -> datetime:
        """The loop's own time."""
        return self._clock()

    @property
    def failed(self) -> asyncio.Event:
        """Set when a part broke."""
        return self._failed

    async def _keep_time(self) -> None:
        """A store's time never goes back: it may have been kept by a clock that ran ahead."""
        newest = await Decisions(self.store.database).reached()
        clock, ahead = self._clock, newest - self._clock() if newest else timedelta()
        if ahead <= timedelta():
            return
        self._clock = lambda: clock() + ahead
        if ahead > timedelta(minutes=1):
            log.warning(
                "the store's time lies %s ahead of the clock: it goes on from there",
                timedelta(seconds=round(ahead.total_seconds())), extra={"action": "time_ahead"},
            )  # fmt: skip

    def _refuse_weak_key(self, key: str) -> None:
        if self._address.host not in {"127.0.0.1", "::1", "localhost"} and len(key) < WEAK_KEY:
            raise Misuse(
                f"AGENTGYM_RL_API_KEY has fewer than {WEAK_KEY} characters, which is too weak for a public "
                "address: leave it out to have one made, or listen on 127.0.0.1."
            )

    async def _start_bus(self, secret: dict[str, str]) -> dict[str, str]:
        if url := self._surroundings.nats_url:
            urls = {OPERATOR: url}
        else:
            passwords = {role: secret[f"nats_{role}"] for role in (OPERATOR, *ROLES)}
            self.server = EmbeddedServer(self.folder / "nats", passwords, self._address.nats_port)
            self._exits.push_async_callback(self.server.stop)
            await self.server.start()
            urls = {role: self.server.url(role) for role in (OPERATOR, *ROLES)}
        self.bus = await Bus.connect(urls[OPERATOR])
        self._exits.push_async_callback(self.bus.close)
        await self.bus.prepare()
        if self._surroundings.nats_url:
            durability = await ask(self.bus, self._surroundings.nats_monitor)
            tell(durability, redacted_url(urls[OPERATOR]))
        return urls

    async def _wire(self) -> None:
        """Make the stages and let them run."""
        metrics = CollectMetrics(self.registry)
        self.relay = Relay(
            self.store, self.bus, lambda: self.intake.crowded, check=self.bus.check,
            burial=self.burial,
        )  # fmt: skip
        self._nudges = asyncio.Event()
        self.looking = Looking(self._settings, self.redactor, here=self._in_process)
        self._exits.push_async_callback(self.looking.stop)
        self.intake = Intake(
            self.store, self.users, self.looking, metrics,
            clock=self._clock, new_id=self._new_id, stored=self._stored,
        )  # fmt: skip
        self.steps = StepwiseDoor(
            self.intake, Episodes(self.store.database), self.store, self.users, self.redactor,
            clock=self._clock, new_id=self._new_id, burial=self.burial,
        )  # fmt: skip
        await self._start_rewarding()
        await self._start_training()
        await self._start_shipping()
        await self.looking.start()  # by now a model server starts beside us, which takes longest
        self._metrics = metrics
        takers, turn = Takers(self.intake, self.redactor), asyncio.Lock()
        for topic, take in (
            (topic_on(TRAJECTORY), takers.trajectory),
            (topic_on(GATEWAY_TRAJECTORY), takers.trajectory),
            (topic_on(FEEDBACK), takers.feedback),
            (topic_on(GATEWAY_FEEDBACK), takers.feedback),
        ):
            stream, name = topic.stream or "", consumer_of(topic, "collector")
            pull = self.bus.pull(stream, topic.subject, name)
            collector = Collector(pull, self.bus, self.store, take, takers.bury, self.burial, turn)
            with contextlib.suppress(Transient):
                await collector.look_back()
            self._run(f"collect {stream}{topic.consumer}", collector.run)
        letters = self.bus.pull(DEADS, DEAD_GATEWAY, "letters")
        self._run("letters", Letters(letters, self.store, metrics.refused).run)
        self._run("relay", self.relay.run)
        self._run("nudge", self._nudge)
        await self._start_upkeep()

    async def _start_rewarding(self) -> None:
        """The reward stage: rewards at once, late words, and ended windows."""
        self.scoring = Scoring(
            self.folder, self.store, self._settings, self._surroundings, self.registry,
            clock=self._clock, published=self._stored, crowded=lambda: self.intake.crowded,
            burial=self.burial, models=[base] if (base := self.policy.defaults.base_model) else [],
        )  # fmt: skip
        self.rewarder, self.bench = self.scoring.rewarder, self.scoring.bench
        self.rewards = self.scoring.rewards
        self._run("reward", self.rewarder.run)

    async def _start_training(self) -> None:
        """The trigger, the desk, and the desk's doors on the bus."""
        database, policy, train = self.store.database, self.policy, self._settings.train
        self.jobs, self.models = Jobs(database), Models(database)
        self.decisions, self.signals = Decisions(database), SignalReader(database)
        self.train_metrics = TrainMetrics(self.registry)
        self.desk = Desk(
            self.jobs, self.redactor,
            Ways(policy.defaults, {"min_agents": train.min_agents, "min_attempts": train.min_attempts, **train.recipe}, policy.train_here),
            check_base=self._check_base, check_world=partial(place_of, registered=self._places), clock=self._clock, new_id=self._new_id,
            changed=self._jobs_changed, finished=self.train_metrics.finished,
        )  # fmt: skip
        self.trigger = Trigger(
            self.signals, self.decisions, self.desk, policy,
            mean=fair_mean, beside=fall_of, clock=self._clock, new_id=self._new_id, deploys=self._serves(),
        )  # fmt: skip
        requests = Requests(
            self.bus.pull(TRAINING, TRAINING_REQUEST, "trainer"), self.bus, self.store, self.desk,
            refuse=lambda raw, error: refusal(raw, error, self.redactor),
            clock=self._clock, new_id=self._new_id, changed=self._jobs_changed, burial=self.burial,
        )  # fmt: skip
        await answer_enquiries(self.bus, STATUS_ENQUIRY, self.desk.answer)
        self._run("training requests", requests.run)
        self._run("trigger", self.trigger.run)
        place = self._surroundings.storage_path
        self.archive = Archive(place) if place else None
        self.workshop = Workshop(
            self.folder, self._settings.train, self.jobs, self.models, self.decisions,
            Data(DataSets(database), archive=self.archive, bus=self.bus, burial=self.burial),
            self.train_metrics, burial=self.burial,
            storage=self._surroundings.model_storage_path, clock=self._clock, new_id=self._new_id,
            changed=self._jobs_changed, worlds=self._settings.validate.worlds,
            beside=self._serves() and not self._settings.serve.url,
        )  # fmt: skip
        if policy.train_here:
            await self.jobs.orphans(self._clock())
            for number, worker in enumerate(self.workshop.workers):
                self._run(f"trainer {number}", worker.run)

    def _serves(self) -> bool:
        """Whether models are validated and rolled out here."""
        base = self.policy.defaults.base_model
        return (
            self._address.gateway_port is not None
            and base is not None
            and bool(self._settings.serve.url or can_serve())
        )

    async def _start_shipping(self) -> None:
        """What makes a trained model answer, where this loop serves models."""
        base = self.policy.defaults.base_model
        if self._address.gateway_port is None:
            return
        if base is None or not (self._settings.serve.url or can_serve()):
            why = "no base model is named" if base is None else "the `train` extra is not installed"
            log.warning("%s, so no model is served here", why, extra={"action": "no_serving"})
            return
        self.shipping = Shipping(
            self.folder, self._settings, self._surroundings, self.store.database, self.bus,
            self.workshop.objects, self.redactor, self.registry, base, clock=self._clock,
            wall=now, new_id=self._new_id, changed=self.relay.wake, judge=self.scoring.judge,
            worlds=self._worlds, burial=self.burial,
        )  # fmt: skip
        self._exits.push_async_callback(self.shipping.close)
        self._run("shipping", self.shipping.run)

    async def _open_gateway(self, http_url: str, key: str, nats: dict[str, str]) -> str | None:
        if self._address.gateway_port is None:
            return None
        await make_buckets(self.bus)
        told = Told(nats.get("gateway") or nats[OPERATOR], http_url, key, self._backend_keys())
        gateway = GatewayChild(self.folder, told, self._address.host, self._address.gateway_port)
        self._exits.push_async_callback(gateway.stop)
        return await gateway.start()

    def _backend_keys(self) -> dict[str, str]:
        """The gateway asks a model server of somebody's own, so it has to know its key."""
        url, key = self._settings.serve.url, self._surroundings.serve_key
        if not url or not key:
            return {}
        known = [os.environ.get("UPSWING_BACKEND_KEYS", ""), f"{url}={key}"]
        return {"UPSWING_BACKEND_KEYS": ",".join(filter(None, known))}

    async def _check_base(self, name: str) -> None:
        """A model of ours, or a base that can be had here."""
        row = await self.models.get(name)
        if self.policy.rules.elsewhere and name == self.policy.defaults.base_model:
            raise Misuse(untrainable(name))
        if row is not None and is_remote(row.path):
            raise Misuse(untrainable(name))
        if row is None:
            await asyncio.to_thread(check, name)

    def _jobs_changed(self) -> None:
        """A job's row has changed: what follows from it is published at once."""
        self.relay.wake()
        self.workshop.wake()
        if self.shipping:
            self.shipping.controller.wake_trained()

    def _stored(self) -> None:
        self.relay.wake()
        self.rewarder.wake()
        self._nudges.set()
        if self.shipping:
            self.shipping.controller.wake()

    async def _nudge(self) -> None:
        """Wake other processes that follow the store: one nudge for all commits since the last."""
        while True:
            await self._nudges.wait()
            self._nudges.clear()
            with contextlib.suppress(Transient, OSError):
                await self.bus.nudge(STORED)

    async def _start_upkeep(self) -> None:
        """The slow chores of all stages."""
        stale = timedelta(hours=self._settings.collect.stale_hours)
        self.upkeep = Upkeep(
            self.store, self.users, self.bus, self.archive, self.scoring.judge_cache, self._metrics,
            clock=self._clock,
            others=[
                self.users.load, self.keys.load, self.rewarder.chores,
                self.bench.judge_ended_windows, lambda: self.steps.end_stale(stale),
                self.workshop.prune,
            ],
            forget=[self.shipping.proving.forget] if self.shipping else [],
            burial=self.burial, failed=self._aside_metrics.round,
        )  # fmt: skip
        self._run("upkeep", self.upkeep.run)
        self._marker: Marker | None = None
        if self._inspection:
            self._marker = Marker(self.folder, self.store.database)
            self._run("mark", self._marker.run)
            self._run("inspection", self._inspection.run)

    async def _serve(self) -> str:
        operations = Operations(
            self.store, self.keys, self.users, self.intake, self.redactor, self.registry,
            sweep=self.upkeep.sweep, bus_connected=lambda: self.bus.connected, clock=self._clock,
            new_key=lambda: (secrets.token_hex(6), f"up_{secrets.token_urlsafe(32)}"),
            score_again=self.rewarder.again,
            trouble=lambda: self._marker.trouble if self._marker else None,
        )  # fmt: skip
        training = Training(
            self.desk, self.trigger, self.jobs, self.models, self.signals, self.workshop.planner,
            clock=self._clock,
        )  # fmt: skip
        judging = Judging(
            self.scoring.rewards, self.scoring.outcomes, self.redactor, clock=self._clock,
            ready=training.ready,
        )  # fmt: skip
        routes = [
            *judging.routes(),
            *training.routes(),
            *CurriculumRoutes(TaskStatsReader(self.store.database), self._places).routes(),
            *Doors(self.intake, self.steps, self._settings.collect.max_bytes).routes(),
            *operations.routes(),
        ]
        if self.shipping:
            ship = self.shipping
            routes += Deployment(ship.controller).routes()
            routes += Validation(
                ship.proving, self.store, self.redactor, compare=ship.compare,
                current=ship.current, known=ship.known,
            ).routes()  # fmt: skip
        front = Front(routes, self.keys, self._address.host, self._address.port)
        self.app = front.app
        self._run("http", front.run, again=False)
        self._exits.push_async_callback(front.close)
        return front.url

    def _run(self, name: str, work: Callable[[], Awaitable[None]], *, again: bool = True) -> None:
        """A part that breaks is logged, counted and begun again; the loop ends where that is no use."""

        async def watched() -> None:
            try:
                await patiently(
                    name, work, failed=self._aside_metrics.round, again=again, fatal=(Damaged,)
                )
            except asyncio.CancelledError:
                raise
            except Exception:
                log.exception("%s broke for good", name, extra={"action": "broke"})
                self._failed.set()

        self._tasks.append(begin(watched(), name=name))

    def _announce(self, running: Running) -> None:
        path = self.folder / "running.json"
        write_private(path, json.dumps(asdict(running), indent=2))
        self._exits.callback(lambda: path.unlink(missing_ok=True))

    async def stop(self) -> None:
        """Take everything down, in reverse; what was acknowledged is on the disk already."""
        await end(task for task in self._tasks if task.get_name() != "http")
        await self._exits.aclose()

    async def run_until_signalled(self, started: Callable[[Running], None]) -> int:
        """Run in the foreground; 0 when asked to stop, 1 when a part broke."""
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for name in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(name, stop.set)
        running = await self.start()
        started(running)
        waits = [begin(stop.wait()), begin(self._failed.wait())]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        await self.stop()
        return 1 if self._failed.is_set() else 0
