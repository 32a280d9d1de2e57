"""Who answers, in which shares, and until when? The traffic plan, as it travels and as it is held.

    baseline   ──────────────────────────────── everybody else
    holdback ──── share that stays with the model before a promoted one, to compare it with
    base ──────── the untrained model, for gateways whose switches ask for it
    pinned ────── models that gateways are pinned to, whatever goes on beside them
    candidates ── share of the new episodes ──┐
    lease ─────── without a newer plan for so long, the baseline answers alone
    withdrawn ─── answer nobody: whoever asks for one gets the baseline

The controller writes the plan, an operator may; the gateway only reads it.
"""

from __future__ import annotations

import math
import re
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from upswing.contracts.backend import URL_PATTERN
from upswing.contracts.typed import json_decoder
from upswing.errors import Reason, Rejected

_NAME = Meta(pattern=r"^[\x21-\x7e]{1,200}$(?!\n)")
"""It stands in headers and metrics, so it is visible ASCII."""
_URL = Meta(pattern=URL_PATTERN, max_length=2000)
_IS_NAME = re.compile(r"[\x21-\x7e]{1,200}")
_TOLERANCE = 1e-9
HOLDBACK = "holdback:"
"""How the step of an episode begins that was drawn while a holdback was kept."""


class Model(msgspec.Struct, frozen=True):
    """A model that can be asked, and where."""

    model_id: Annotated[str, _NAME]
    backend: Annotated[str, _URL]
    """The base URL of an OpenAI-compatible server; without a path, `/v1` is meant."""
    name: Annotated[str, Meta(min_length=1, max_length=500)]
    """What the server calls it."""
    timeout_seconds: Annotated[float, Meta(gt=0, le=3600)] = 60.0
    """Until the first byte of an answer, up to an hour; a slower one counts as failed."""
    prompt_price: Annotated[float, Meta(ge=0)] = 0.0
    """US dollars for a million prompt tokens."""
    completion_price: Annotated[float, Meta(ge=0)] = 0.0
    extra: dict[str, Any] = {}
    """Fields added to a request that does not name them, such as `return_token_ids`."""
    strict: bool = False
    """Its server refuses fields that it does not know: it gets those of OpenAI's interface alone."""
    shapes: tuple[str, ...] = ()
    """What its server speaks beside chat completions: `responses`, `messages`."""


class Candidate(msgspec.Struct, frozen=True):
    model: Model
    share: Annotated[float, Meta(ge=0, le=1)]
    """Of the new episodes, 0 to 1."""


class Plan(msgspec.Struct, frozen=True):
    """One state of the traffic; a later one replaces it whole."""

    fence: Annotated[int, Meta(ge=0)]
    """Rises with every controller that takes over: what an older one still writes is ignored."""
    rollout: str
    """Whose evidence the requests are."""
    salt: Annotated[str, Meta(min_length=1)]
    """Mixed into the bucket of an episode, so that every rollout draws anew."""
    baseline: Model
    candidates: tuple[Candidate, ...] = ()
    lease_until: Annotated[datetime, Meta(tz=True)] | None = None
    """By the writer's clock; None: an operator's word, which does not run out."""
    lease_seconds: Annotated[float, Meta(gt=0, le=86_400)] | None = None
    """How long it holds from when it was written: a gateway measures that with its own clock, from when it heard of it."""
    operator: bool = False
    version: Annotated[int, Meta(ge=0)] = 0
    """Rises with every write of one controller."""
    origin: str = ""
    """The store whose rows it follows from; without one, nobody says."""
    written: Annotated[datetime, Meta(tz=True)] | None = None
    """When, in real time: a plan that is kept up is written every ten seconds."""
    withdrawn: tuple[Annotated[str, _NAME], ...] = ()
    """Models that were rolled back, aborted or retired, as far as somebody may still ask for them."""
    holdback: Candidate | None = None
    """The model before the baseline, which was promoted not long ago, and the share that stays with it."""
    base: Model | None = None
    """The untrained model, where the baseline is another one and a server has it."""
    trained: bool | None = None
    """The baseline is not the base: where `base` is missing, nobody serves that. None: a controller wrote it that
    does not say, so under a switch nobody answers rather than a trained model."""
    pinned: tuple[Model, ...] = ()
    """Models that a gateway's RL_MODEL_VERSION names and that neither answer nor go out otherwise."""

    def lease_left(self, age: float | None, now: datetime) -> float | None:
        """Seconds that it holds, where it was written `age` seconds ago; None: for ever.

        Nobody's clock is compared with another's, except where neither plan nor bus says how long ago
        it was: then what `now` shows can shorten a lease, and never lengthen it.
        """
        if self.lease_until is None:
            return None
        length = self.lease_seconds
        if length is None and self.written is not None:
            length = (self.lease_until - self.written).total_seconds()
        if length is None:
            return (self.lease_until - now).total_seconds()
        if age is None:
            age = (now - self.written).total_seconds() if self.written else 0.0
        return length - max(0.0, age)

    def models(self) -> tuple[Model, ...]:
        return (self.baseline, *(candidate.model for candidate in self.candidates))

    @property
    def untrained(self) -> Model | None:
        """The base; None: nobody serves it, or nobody says which model it is."""
        return self.base or (self.baseline if self.trained is False else None)


_Counted = Annotated[int, Meta(ge=0, le=10**15)]


class Counts(msgspec.Struct, frozen=True):
    """How one model did at one gateway, since that gateway started."""

    requests: _Counted = 0
    errors: _Counted = 0
    fallbacks: _Counted = 0
    """Of the errors, those that the baseline answered."""
    latency_ms_sum: float = 0.0


Tally = dict[str, dict[str, Counts]]
"""Of one gateway: rollout → model → counts, which only rise."""


class Switches(msgspec.Struct, frozen=True):
    """What a gateway's environment permits, as the controller hears of it."""

    enabled: bool = True
    """USE_RL_MODEL: trained models may answer."""
    version: str | None = None
    """RL_MODEL_VERSION: the one model that answers."""
    percentage: Annotated[float, Meta(ge=0, le=100)] = 100.0
    """RL_ROLLOUT_PERCENTAGE: of the episodes, at most, that trained models get."""

    @property
    def bar(self) -> str:
        """Which switch keeps rollouts away from this gateway; empty: none does.

        >>> [Switches(False, "v3", 0).bar, Switches(version="v3").bar, Switches(percentage=0).bar, Switches().bar]
        ['USE_RL_MODEL', 'RL_MODEL_VERSION', 'RL_ROLLOUT_PERCENTAGE', '']
        """
        if not self.enabled:
            return "USE_RL_MODEL"
        if self.version is not None:
            return "RL_MODEL_VERSION"
        return "" if self.percentage > 0 else "RL_ROLLOUT_PERCENTAGE"


_SWITCHES = json_decoder(Switches)
_DECODER = json_decoder(Plan)
_TALLIES = json_decoder(Tally)


def is_model_name(value: object) -> bool:
    """Can a plan name a model so? One bad name would spoil the whole plan.

    >>> is_model_name("agent-zero-rl-v3"), is_model_name("two words"), is_model_name(b"3")
    (True, False, False)
    """
    return isinstance(value, str) and _IS_NAME.fullmatch(value) is not None


def read_plan(raw: bytes) -> Plan:
    """The plan in `raw`, or `Rejected` with what is wrong in it.

    >>> read_plan(b'{"fence": 1}')
    Traceback (most recent call last):
    upswing.errors.Rejected: The traffic plan cannot be used: Object missing required field `rollout`.
    """
    try:
        plan = _DECODER.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Rejected(Reason.SCHEMA, f"The traffic plan cannot be used: {error}.") from None
    return check_plan(plan)


def check_plan(plan: Plan) -> Plan:
    """The plan itself when it makes sense as a whole."""
    held = (plan.holdback,) if plan.holdback else ()
    total = math.fsum(each.share for each in (*plan.candidates, *held))
    if not total <= 1 + _TOLERANCE:
        raise Rejected(Reason.SCHEMA, f"The shares of the candidates sum to {total:g}, above 1.")
    ids = [model.model_id for model in (*plan.models(), *(each.model for each in held))]
    if len(set(ids)) < len(ids):
        raise Rejected(Reason.SCHEMA, f"A model stands twice in the plan: {', '.join(ids)}.")
    asked = {*ids, *(model.model_id for model in plan.pinned)}
    if both := asked.intersection(plan.withdrawn):
        raise Rejected(Reason.SCHEMA, f"{', '.join(sorted(both))} cannot answer and be withdrawn.")
    return plan


def write_plan(plan: Plan) -> bytes:
    """The plan as it travels."""
    return msgspec.json.encode(check_plan(plan))


def read_tally(raw: bytes) -> Tally:
    """A gateway's counts, or `Rejected`.

    >>> read_tally(b'{"r": {"m": {"requests": 2, "errors": 1}}}')["r"]["m"].errors
    1
    """
    try:
        return _TALLIES.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Rejected(Reason.SCHEMA, f"The counts cannot be used: {error}.") from None


def read_switches(raw: bytes) -> Switches:
    """A gateway's switches, or `Rejected`.

    >>> read_switches(b'{"enabled": false}').bar
    'USE_RL_MODEL'
    """
    try:
        return _SWITCHES.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Rejected(Reason.SCHEMA, f"The switches cannot be used: {error}.") from None


def is_plan_newer(new: Plan, held: Plan | None) -> bool:
    """Is `new` at least as late as what is held? A controller that lost its fence is not heard.

    >>> old = Plan(2, "r", "s", Model("m", "http://h", "m"), version=5)
    >>> [is_plan_newer(msgspec.structs.replace(old, fence=f, version=v), old) for f, v in ((3, 1), (2, 5), (2, 4), (1, 9))]
    [True, True, False, False]
    """
    return held is None or (new.fence, new.version) >= (held.fence, held.version)
