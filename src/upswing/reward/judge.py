"""How good was each of these, compared with the others? A judge is asked, within a budget.

| what happens                             | what follows                                          |
|------------------------------------------|-------------------------------------------------------|
| the same question was answered before    | the kept answer is used; it costs nothing             |
| no answer in time, or `Transient`        | asked again, with back-off, a few times               |
| an answer that cannot be used            | asked once more, shuffled anew                        |
| an id whose score is not a number, twice | the group is judged without that trajectory           |
| `Denied`, `Rejected`, `Misuse`           | the group stays unjudged, with the reason             |
| the budget does not allow the next call  | the group stays unjudged, with the reason             |
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from typing import Any, Protocol

from upswing.contracts.codec import canonical
from upswing.contracts.outcome import Outcome
from upswing.errors import Reason, Rejected, Transient, UpswingError
from upswing.reward.batches import OVERLAP, SIZE, Unmergeable, merge, plan
from upswing.reward.outcomes import ground_truth_text
from upswing.reward.prompt import RUBRIC, Attempt, Limits, Prompt, build
from upswing.reward.verdict import GroupVerdict, Spend, Unusable, Verdicts, parse

Sleep = Callable[[float], Awaitable[None]]
_MILLION = 1_000_000
_BYTES_PER_TOKEN = 3
"""A cautious guess: most tokenizers need fewer tokens than this says."""


class Answer(Protocol):
    """What came back; token counts are None where the endpoint does not tell."""

    @property
    def text(self) -> str: ...
    @property
    def prompt_tokens(self) -> int | None: ...
    @property
    def completion_tokens(self) -> int | None: ...


class Ask(Protocol):
    """Puts one question to a model, or raises one of our errors."""

    async def __call__(
        self, messages: Sequence[Mapping[str, str]], response_format: Mapping[str, Any]
    ) -> Answer: ...


class Cache(Protocol):
    """Remembers usable answers by the hash of their question."""

    async def get(self, key: str) -> str | None: ...

    async def put(self, key: str, answer: str, trajectory_ids: Sequence[str]) -> None: ...


@dataclass(frozen=True, slots=True)
class Group:
    """Trajectories of one window and scenario, without those that the infrastructure spoiled."""

    window_id: str
    scenario_id: str
    attempts: tuple[Attempt, ...]
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True)
class Budget:
    """What may be spent in all; None means no limit."""

    max_tokens: int | None = None
    """Of prompts and answers together."""
    max_usd: float | None = None
    prompt_price: float = 0.0
    """US dollars for a million prompt tokens."""
    completion_price: float = 0.0

    def spend(self, prompt_tokens: int, completion_tokens: int) -> Spend:
        """These tokens with their price."""
        usd = prompt_tokens * self.prompt_price + completion_tokens * self.completion_price
        return Spend(0, prompt_tokens, completion_tokens, usd / _MILLION)

    def refusal(self, after: Spend) -> str | None:
        """Why it may not come to this; None when it may."""
        tokens = after.prompt_tokens + after.completion_tokens
        if self.max_tokens is not None and not tokens <= self.max_tokens:
            return f"The judge's budget of {self.max_tokens:,} tokens is used up."
        if self.max_usd is not None and not after.usd <= self.max_usd:
            return f"The judge's budget of ${self.max_usd:,.2f} is used up."
        return None


@dataclass(frozen=True, slots=True)
class Policy:
    """How a judge is asked."""

    model: str
    rubric: str = RUBRIC
    limits: Limits = field(default_factory=Limits)
    minimum: int = 4
    """Members a group needs to be judged."""
    size: int = SIZE
    """Most members in one question."""
    overlap: int = OVERLAP
    repeats: int = 1
    """How often each group is judged, in different orders; the mean counts."""
    reasks: int = 1
    """How often an answer that cannot be used is asked for again."""
    tries: int = 3
    """How often a call is tried when the endpoint is away or slow."""
    timeout: timedelta = timedelta(seconds=120)
    backoff: timedelta = timedelta(seconds=1)
    """Before the second try; doubled before each further one."""
    answer_tokens: int = 2_000
    """The longest answer expected, for the budget's look ahead."""


@dataclass(frozen=True, slots=True)
class _Failed:
    sentence: str


@dataclass(slots=True)
class _Desk:
    """One group being judged: what asking needs, and what it has cost."""

    ask: Ask
    policy: Policy
    budget: Budget
    before: Spend
    cache: Cache | None
    sleep: Sleep
    spend: Spend = field(default_factory=Spend)

    async def score(self, attempts: Sequence[Attempt], truth: str, seed: str) -> _Batch | _Failed:
        """One batch; an answer that was paid for, even at the second asking, is not paid twice."""
        prompts = [
            _prompt(attempts, truth, f"{seed}/{again}", self.policy)
            for again in range(self.policy.reasks + 1)
        ]
        for prompt in prompts:
            kept = await self.cache.get(_key(self.policy.model, prompt)) if self.cache else None
            if kept is not None and isinstance(read := parse(kept, prompt.labels), Verdicts):
                self.spend += Spend(cached=1)
                return _batch(read, prompt)
        return await self._asked(prompts)

    async def _asked(self, prompts: Sequence[Prompt]) -> _Batch | _Failed:
        partial: tuple[Prompt, str, _Batch] | None = None
        sentence = ""
        for prompt in prompts:
            answer = await self._answer(prompt)
            if isinstance(answer, _Failed):
                return answer
            match parse(answer.text, prompt.labels):
                case Unusable() as unusable:
                    sentence = unusable.sentence
                case Verdicts() as read:
                    if not read.lacking:
                        await self._keep(prompt, answer.text)
                        return _batch(read, prompt)
                    partial = prompt, answer.text, _batch(read, prompt)
        if partial is None:
            return _Failed(f"The judge was asked {_times(len(prompts))}: {sentence}")
        prompt, told, batch = partial
        await self._keep(prompt, told)
        return batch

    async def _answer(self, prompt: Prompt) -> Answer | _Failed:
        size = sum(len(message["content"].encode()) for message in prompt.messages)
        guess = self.budget.spend(size // _BYTES_PER_TOKEN, self.policy.answer_tokens)
        limit, why = self.policy.timeout.total_seconds(), ""
        for tried in range(self.policy.tries):
            if refusal := self.budget.refusal(self.before + self.spend + guess):
                return _Failed(refusal)
            if tried:
                await self.sleep(self.policy.backoff.total_seconds() * 2 ** (tried - 1))
            self.spend += Spend(calls=1)
            try:
                async with asyncio.timeout(limit):
                    answer = await self.ask(prompt.messages, prompt.response_format)
            except TimeoutError:
                why = f"There was no answer in {limit:g} s."
                self.spend += guess  # it may have been written, and billed, all the same
            except Transient as error:
                why = str(error)
            except UpswingError as error:
                if isinstance(error, Rejected) and error.reason is Reason.TOO_LARGE:
                    self.spend += guess
                return _Failed(str(error))
            else:
                self.spend += self._cost(answer, guess)
                return answer
        return _Failed(f"The judge was tried {_times(self.policy.tries)}: {why}")

    async def _keep(self, prompt: Prompt, answer: str) -> None:
        if self.cache:
            key = _key(self.policy.model, prompt)
            await self.cache.put(key, answer, sorted(prompt.labels.values()))

    def _cost(self, answer: Answer, guess: Spend) -> Spend:
        read, wrote = answer.prompt_tokens, answer.completion_tokens
        written = len(answer.text.encode(errors="replace")) // _BYTES_PER_TOKEN
        return self.budget.spend(
            guess.prompt_tokens if read is None else read, written if wrote is None else wrote
        )


@dataclass(frozen=True, slots=True)
class _Batch:
    """The verdicts of one batch, by trajectory id."""

    scores: dict[str, float]
    explanations: dict[str, str]
    clamped: int


async def judge_group(
    group: Group,
    ask: Ask,
    policy: Policy,
    *,
    sleep: Sleep,
    seed: str,
    cache: Cache | None = None,
    budget: Budget = Budget(),  # noqa: B008  it is frozen
    spent: Spend = Spend(),  # noqa: B008  it is frozen
) -> GroupVerdict:
    """The verdict on a group. `spent` is what the budget has paid already, for other groups."""
    attempts = {each.trajectory_id: each for each in group.attempts}
    if len(attempts) < policy.minimum:
        return GroupVerdict.unjudged(
            policy.model,
            f"The group has {len(attempts)} trajectories; {policy.minimum} are needed to compare.",
        )
    desk = _Desk(ask, policy, budget, spent, cache, sleep)
    truth = ground_truth_text(group.outcome)
    batches: list[_Batch] = []
    for repeat in range(policy.repeats):
        turn = f"{seed}/{repeat}"
        order = _shuffled(attempts, turn)
        for place, names in enumerate(plan(order, policy.size, policy.overlap)):
            batch = await desk.score([attempts[name] for name in names], truth, f"{turn}/{place}")
            if isinstance(batch, _Failed):
                return GroupVerdict.unjudged(policy.model, batch.sentence, desk.spend)
            batches.append(batch)
    return _verdict(batches, sorted(attempts), policy, desk.spend)


async def ask_judge(
    prompt: Prompt, ask: Ask, policy: Policy, *, sleep: Sleep, budget: Budget, spent: Spend
) -> tuple[str | None, str, Spend]:
    """One question that is about no group: the answer or None, why there is none, and what it cost."""
    desk = _Desk(ask, policy, budget, spent, None, sleep)
    answer = await desk._answer(prompt)  # noqa: SLF001 - the same module
    if isinstance(answer, _Failed):
        return None, answer.sentence, desk.spend
    return answer.text, "", desk.spend


def _verdict(
    batches: Sequence[_Batch], names: Sequence[str], policy: Policy, spend: Spend
) -> GroupVerdict:
    merged = merge([batch.scores for batch in batches])
    if isinstance(merged, Unmergeable):
        return GroupVerdict.unjudged(policy.model, merged.sentence, spend)
    if len(merged.scores) < policy.minimum:
        return GroupVerdict.unjudged(
            policy.model, f"Only {len(merged.scores)} of {len(names)} scores are numbers.", spend
        )
    explanations: dict[str, str] = {}
    for batch in batches:
        explanations = batch.explanations | explanations
    lacking = tuple(name for name in names if name not in merged.scores)
    return GroupVerdict(
        True,
        _sentence(merged.scores, len(batches), lacking, policy),
        policy.model,
        merged.scores,
        {name: explanations[name] for name in merged.scores},
        spend,
        sum(batch.clamped for batch in batches),
        lacking,
    )


def _sentence(
    scores: Mapping[str, float], batches: int, lacking: Sequence[str], policy: Policy
) -> str:
    low, high = min(scores.values()), max(scores.values())
    questions = "1 question" if batches == 1 else f"{batches} questions"
    compared = f"{policy.model} compared {len(scores)} trajectories in {questions}"
    parts = [f"{compared}: scores {low:.2f} to {high:.2f}"]
    if low == high:
        parts.append("all alike, so there is nothing to learn")
    if lacking:
        parts.append(f"{len(lacking)} got no usable score")
    return "; ".join(parts) + "."


def _prompt(attempts: Sequence[Attempt], truth: str, seed: str, policy: Policy) -> Prompt:
    """The nonce follows from everything quoted, so no quoted text can know it."""
    told = canonical([truth, *sorted(canonical(each.body) for each in attempts)])
    nonce = sha256(seed.encode() + b"\0" + told).hexdigest()[:16]
    return build(
        attempts, truth, seed=seed, nonce=nonce, rubric=policy.rubric, limits=policy.limits
    )


def _batch(read: Verdicts, prompt: Prompt) -> _Batch:
    """From the labels the judge saw to the trajectories they mean."""
    return _Batch(
        {prompt.labels[label]: score for label, score in read.scores.items()},
        {prompt.labels[label]: told for label, told in read.explanations.items()},
        read.clamped,
    )


def _key(model: str, prompt: Prompt) -> str:
    return sha256(canonical([model, prompt.messages])).hexdigest()


def _shuffled(names: Iterable[str], seed: str) -> list[str]:
    return sorted(names, key=lambda name: sha256(f"batch\0{seed}\0{name}".encode()).digest())


def _times(count: int) -> str:
    return "once" if count == 1 else "twice" if count == 2 else f"{count} times"
