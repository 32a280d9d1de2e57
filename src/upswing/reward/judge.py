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
from typing import Any

from upswing.contracts.codec import canonical
from upswing.contracts.outcome import Outcome
from upswing.errors import Reason, Rejected, Transient, UpswingError
from upswing.infra.backoff import Backoff
from upswing.openai.completions import ChatCompletion
from upswing.reward.core.batches import OVERLAP, SIZE, Unmergeable, merge_batches, plan_batches
from upswing.reward.core.judge_prompt import (
    RUBRIC,
    JudgedAttempt,
    Prompt,
    PromptLimits,
    build_prompt,
)
from upswing.reward.core.judge_verdict import (
    AttemptVerdicts,
    GroupVerdict,
    JudgeSpend,
    UnusableAnswer,
    parse_verdicts,
)
from upswing.reward.judge_cache import JudgeCache
from upswing.reward.outcomes import ground_truth_text

Sleep = Callable[[float], Awaitable[None]]
AskJudge = Callable[[Sequence[Mapping[str, str]], Mapping[str, Any]], Awaitable[ChatCompletion]]
"""Puts one question to a model, or raises one of our errors."""
_MILLION = 1_000_000
_BYTES_PER_TOKEN = 3
"""A cautious guess: most tokenizers need fewer tokens than this says."""

_RETRIES = Backoff(1.0)


@dataclass(frozen=True, slots=True)
class GroupToJudge:
    """Trajectories of one window and scenario, without those that the infrastructure spoiled."""

    window_id: str
    scenario_id: str
    attempts: tuple[JudgedAttempt, ...]
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True)
class JudgeBudget:
    """What a judge may cost in all; None means no limit."""

    max_tokens: int | None = None
    """Of prompts and answers together."""
    max_usd: float | None = None
    prompt_price: float = 0.0
    """US dollars for a million prompt tokens."""
    completion_price: float = 0.0

    def price(self, prompt_tokens: int, completion_tokens: int) -> JudgeSpend:
        """These tokens with their price."""
        usd = prompt_tokens * self.prompt_price + completion_tokens * self.completion_price
        return JudgeSpend(0, prompt_tokens, completion_tokens, usd / _MILLION)

    def overdrawn(self, after: JudgeSpend) -> str | None:
        """Why spending may not come to this; None when it may."""
        tokens = after.prompt_tokens + after.completion_tokens
        if self.max_tokens is not None and not tokens <= self.max_tokens:
            return f"The judge's budget of {self.max_tokens:,} tokens is used up."
        if self.max_usd is not None and not after.usd <= self.max_usd:
            return f"The judge's budget of ${self.max_usd:,.2f} is used up."
        return None


@dataclass(frozen=True, slots=True)
class JudgePolicy:
    """How a judge is asked."""

    model: str
    rubric: str = RUBRIC
    limits: PromptLimits = field(default_factory=PromptLimits)
    min_members: int = 4
    """Members a group needs to be judged."""
    batch_size: int = SIZE
    """Most members in one question."""
    overlap: int = OVERLAP
    repeats: int = 1
    """How often each group is judged, in different orders; the mean counts."""
    reasks: int = 1
    """How often an answer that cannot be used is asked for again."""
    tries: int = 3
    """How often a call is tried when the endpoint is away or slow."""
    timeout: timedelta = timedelta(seconds=120)
    backoff: Backoff = _RETRIES
    """Seconds before the second try, and each further one."""
    answer_tokens: int = 2_000
    """The longest answer expected, for what the budget allows."""


@dataclass(frozen=True, slots=True)
class Judge:
    """A model that judges: how it is asked, what it may cost, and the answers that were paid for."""

    ask: AskJudge
    policy: JudgePolicy
    budget: JudgeBudget = field(default_factory=JudgeBudget)
    cache: JudgeCache | None = None
    sleep: Sleep = asyncio.sleep
    on_overdrawn: Callable[[JudgeSpend], None] = lambda _: None
    """Called with the price of a question that the budget does not allow."""


@dataclass(frozen=True, slots=True)
class _Failed:
    sentence: str


class _JudgeSession:
    """One group being judged, and what that has cost; `spent` was paid before, for others."""

    def __init__(self, judge: Judge, spent: JudgeSpend) -> None:
        self._judge, self._spent_before = judge, spent
        self.spend = JudgeSpend()

    async def score_batch(
        self, attempts: Sequence[JudgedAttempt], truth: str, seed: str
    ) -> _BatchScores | _Failed:
        """One batch; an answer that was paid for, even at the second asking, is not paid twice."""
        policy, cache = self._judge.policy, self._judge.cache
        prompts = [
            _build_prompt(attempts, truth, f"{seed}/{again}", policy)
            for again in range(policy.reasks + 1)
        ]
        for prompt in prompts:
            cached = await cache.get(_cache_key(policy.model, prompt)) if cache else None
            if cached is None:
                continue
            verdicts = parse_verdicts(cached, prompt.labels)
            if isinstance(verdicts, AttemptVerdicts):
                self.spend += JudgeSpend(cached=1)
                return _batch_scores(verdicts, prompt)
        return await self._ask_until_usable(prompts)

    async def _ask_until_usable(self, prompts: Sequence[Prompt]) -> _BatchScores | _Failed:
        partial: tuple[Prompt, str, _BatchScores] | None = None
        sentence = ""
        for prompt in prompts:
            answer = await self.ask(prompt)
            if isinstance(answer, _Failed):
                return answer
            match parse_verdicts(answer.text, prompt.labels):
                case UnusableAnswer() as unusable:
                    sentence = unusable.sentence
                case AttemptVerdicts() as verdicts:
                    if not verdicts.lacking:
                        await self._cache_answer(prompt, answer.text)
                        return _batch_scores(verdicts, prompt)
                    partial = prompt, answer.text, _batch_scores(verdicts, prompt)
        if partial is None:
            return _Failed(f"The judge was asked {_times_text(len(prompts))}: {sentence}")
        prompt, text, batch = partial
        await self._cache_answer(prompt, text)
        return batch

    async def ask(self, prompt: Prompt) -> ChatCompletion | _Failed:
        """One question, tried again while the endpoint is away, as far as the budget allows."""
        judge, policy = self._judge, self._judge.policy
        size = sum(len(message["content"].encode()) for message in prompt.messages)
        guess = judge.budget.price(size // _BYTES_PER_TOKEN, policy.answer_tokens)
        limit, why = policy.timeout.total_seconds(), ""
        for tried in range(policy.tries):
            if overdrawn := judge.budget.overdrawn(self._spent_before + self.spend + guess):
                judge.on_overdrawn(guess)
                return _Failed(overdrawn)
            if tried:
                await judge.sleep(policy.backoff.seconds(tried))
            self.spend += JudgeSpend(calls=1)
            try:
                async with asyncio.timeout(limit):
                    answer = await judge.ask(prompt.messages, prompt.response_format)
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
                self.spend += self._cost_of_answer(answer, guess)
                return answer
        return _Failed(f"The judge was tried {_times_text(policy.tries)}: {why}")

    async def _cache_answer(self, prompt: Prompt, answer: str) -> None:
        if self._judge.cache:
            key = _cache_key(self._judge.policy.model, prompt)
            await self._judge.cache.put(key, answer, sorted(prompt.labels.values()))

    def _cost_of_answer(self, answer: ChatCompletion, guess: JudgeSpend) -> JudgeSpend:
        read, wrote = answer.prompt_tokens, answer.completion_tokens
        written = len(answer.text.encode(errors="replace")) // _BYTES_PER_TOKEN
        return self._judge.budget.price(
            guess.prompt_tokens if read is None else read, written if wrote is None else wrote
        )


@dataclass(frozen=True, slots=True)
class _BatchScores:
    """The verdicts of one batch, by trajectory id."""

    scores: dict[str, float]
    explanations: dict[str, str]
    clamped: int


async def judge_group(
    group: GroupToJudge, judge: Judge, *, seed: str, spent: JudgeSpend | None = None
) -> GroupVerdict:
    """The verdict on a group. `spent` is what the budget has paid already, for other groups."""
    policy = judge.policy
    attempts = {each.trajectory_id: each for each in group.attempts}
    if len(attempts) < policy.min_members:
        return GroupVerdict.unjudged(
            policy.model,
            f"The group has {len(attempts)} trajectories; {policy.min_members} are needed to compare.",
        )
    session = _JudgeSession(judge, spent or JudgeSpend())
    truth = ground_truth_text(group.outcome)
    batches: list[_BatchScores] = []
    for repeat in range(policy.repeats):
        shuffle_seed = f"{seed}/{repeat}"
        order = _shuffle_names(attempts, shuffle_seed)
        for index, names in enumerate(plan_batches(order, policy.batch_size, policy.overlap)):
            batch = await session.score_batch(
                [attempts[name] for name in names], truth, f"{shuffle_seed}/{index}"
            )
            if isinstance(batch, _Failed):
                return GroupVerdict.unjudged(policy.model, batch.sentence, session.spend)
            batches.append(batch)
    return _group_verdict(batches, sorted(attempts), policy, session.spend)


async def ask_judge(
    prompt: Prompt, judge: Judge, *, spent: JudgeSpend
) -> tuple[str | None, str, JudgeSpend]:
    """One question that is about no group: the answer or None, why there is none, and what it cost."""
    session = _JudgeSession(judge, spent)
    answer = await session.ask(prompt)
    if isinstance(answer, _Failed):
        return None, answer.sentence, session.spend
    return answer.text, "", session.spend


def _group_verdict(
    batches: Sequence[_BatchScores], names: Sequence[str], policy: JudgePolicy, spend: JudgeSpend
) -> GroupVerdict:
    merged = merge_batches([batch.scores for batch in batches])
    if isinstance(merged, Unmergeable):
        return GroupVerdict.unjudged(policy.model, merged.sentence, spend)
    if len(merged.scores) < policy.min_members:
        return GroupVerdict.unjudged(
            policy.model, f"Only {len(merged.scores)} of {len(names)} scores are numbers.", spend
        )
    explanations: dict[str, str] = {}
    for batch in batches:
        explanations = batch.explanations | explanations
    lacking = tuple(name for name in names if name not in merged.scores)
    return GroupVerdict(
        True,
        _verdict_sentence(merged.scores, len(batches), lacking, policy),
        policy.model,
        merged.scores,
        {name: explanations[name] for name in merged.scores},
        spend,
        sum(batch.clamped for batch in batches),
        lacking,
    )


def _verdict_sentence(
    scores: Mapping[str, float], batches: int, lacking: Sequence[str], policy: JudgePolicy
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


def _build_prompt(
    attempts: Sequence[JudgedAttempt], truth: str, seed: str, policy: JudgePolicy
) -> Prompt:
    """The nonce follows from everything quoted, so no quoted text can know it."""
    quoted = canonical([truth, *sorted(canonical(each.body) for each in attempts)])
    nonce = sha256(seed.encode() + b"\0" + quoted).hexdigest()[:16]
    return build_prompt(
        attempts, truth, seed=seed, nonce=nonce, rubric=policy.rubric, limits=policy.limits
    )


def _batch_scores(verdicts: AttemptVerdicts, prompt: Prompt) -> _BatchScores:
    """From the labels the judge saw to the trajectories they mean."""
    return _BatchScores(
        {prompt.labels[label]: score for label, score in verdicts.scores.items()},
        {prompt.labels[label]: text for label, text in verdicts.explanations.items()},
        verdicts.clamped,
    )


def _cache_key(model: str, prompt: Prompt) -> str:
    return sha256(canonical([model, prompt.messages])).hexdigest()


def _shuffle_names(names: Iterable[str], seed: str) -> list[str]:
    return sorted(names, key=lambda name: sha256(f"batch\0{seed}\0{name}".encode()).digest())


def _times_text(count: int) -> str:
    return "once" if count == 1 else "twice" if count == 2 else f"{count} times"
