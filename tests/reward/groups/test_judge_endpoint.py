"""A judge behind real HTTP on the loopback (a double): what it may do, and what that costs."""

import asyncio
import json
import logging
import traceback
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from judge_doubles import Endpoint, ObedientJudge, answer, body, completion, group, judged
from tests.support import until

from upswing.errors import Denied, Misuse, Rejected, Transient
from upswing.infra.completion_client import OpenAI, model_name_at_host
from upswing.reward.judge import JudgeBudget, JudgePolicy, JudgeSpend
from upswing.reward.judge_cache import JudgeCache

KEY = "sk-right"
GROUP = group(*(body(n / 10) for n in range(5)))
SHORT, LONG = timedelta(seconds=0.2), timedelta(seconds=60)
"""How long the client waits for an endpoint that is silent, and for one that answers."""


def client(endpoint, **options):
    return OpenAI("double-model", key=options.pop("key", KEY), base_url=endpoint.url, **options)


async def verdict_of(*script, key=KEY, policy=None, **options):
    timeout = SHORT if any(isinstance(act, float) for act in script) else LONG
    async with Endpoint(*script) as endpoint:
        ask = client(endpoint, key=key, timeout=timeout)
        verdict = await judged(GROUP, ask, policy=policy, **options)
    return verdict, endpoint


def scored(value):
    return lambda labels: answer(dict.fromkeys(labels, value))


def half(labels):
    return answer(dict.fromkeys(labels[: len(labels) // 2], 0.5))


def twice(labels):
    entries = json.loads(answer(dict.fromkeys(labels, 0.5)))["scores"]
    return json.dumps({"scores": [*entries, {"id": labels[0], "score": 0.9}]})


def not_a_number_first(labels):
    return answer(dict.fromkeys(labels, 0.5)).replace("0.5", "NaN", 1)


async def test_a_judge_answers_and_its_price_is_known():
    budget = JudgeBudget(prompt_price=1.0, completion_price=10.0)
    verdict, endpoint = await verdict_of(budget=budget)
    assert verdict.judged
    assert verdict.scores.keys() == {each.trajectory_id for each in GROUP.attempts}
    assert verdict.spend == JudgeSpend(1, 900, 90, pytest.approx(0.0018))
    assert endpoint.requests[0]["model"] == "double-model"
    assert endpoint.requests[0]["response_format"]["type"] == "json_schema"


@pytest.mark.parametrize(
    ("act", "why"),
    [
        (lambda labels: "The third was best.", "holds no JSON"),
        (lambda labels: '{"scores": 5}', "no list of scores"),
        (half, "leaves out 3 of 5"),
        (twice, "twice, differently"),
        (lambda labels: answer({**dict.fromkeys(labels, 0.5), "ZZZZ": 1}), "not asked"),
        (scored(float("nan")), "Not one score"),
        (lambda labels: "x" * 190_000, "holds no JSON"),
    ],
)
async def test_an_unusable_answer_is_asked_for_once_more_and_then_left(act, why):
    verdict, endpoint = await verdict_of(act, act)
    assert not verdict.judged
    assert why in verdict.reason
    assert "asked twice" in verdict.reason
    assert len(endpoint.requests) == 2
    assert verdict.spend.prompt_tokens == 1800
    mended, endpoint = await verdict_of(act)
    assert mended.judged
    assert mended.spend.calls == 2


async def test_the_second_question_is_shuffled_anew():
    _, endpoint = await verdict_of(half, half)
    first, second = (request["messages"] for request in endpoint.requests)
    assert first != second


async def test_scores_out_of_range_are_clamped_and_counted():
    verdict, _ = await verdict_of(scored(40))
    assert set(verdict.scores.values()) == {1.0}
    assert verdict.clamped == 5
    assert "nothing to learn" in verdict.reason


async def test_one_score_that_is_no_number_costs_only_its_own():
    verdict, endpoint = await verdict_of(not_a_number_first, not_a_number_first)
    assert verdict.judged
    assert len(verdict.scores) == 4
    assert len(verdict.lacking) == 1
    assert len(endpoint.requests) == 2


async def test_more_than_200_kb_is_cut_off_and_refused():
    verdict, endpoint = await verdict_of((200, b"x" * 5_000_000))
    assert not verdict.judged
    assert "larger than 200 KB" in verdict.reason
    assert len(endpoint.requests) == 1
    assert verdict.spend.completion_tokens > 0


@pytest.mark.parametrize("status", [429, 500, 502, 503, 408])
async def test_a_busy_endpoint_is_tried_again_with_growing_pauses(status):
    pauses = []

    async def sleep(seconds):
        pauses.append(seconds)

    verdict, _ = await verdict_of(status, status, sleep=sleep)
    assert verdict.judged
    assert pauses == [1.0, 2.0]
    verdict, endpoint = await verdict_of(status, status, status)
    assert not verdict.judged
    assert str(status) in verdict.reason
    assert len(endpoint.requests) == 3


async def test_a_slow_endpoint_is_given_up_and_tried_again():
    verdict, endpoint = await verdict_of(5.0, 5.0, 5.0)
    assert not verdict.judged
    assert "did not answer in 0.2 s" in verdict.reason
    assert len(endpoint.requests) == 3


async def test_slow_judges_take_no_thread_that_others_need():
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))
    async with Endpoint(*[3600.0] * 4) as endpoint:
        ask = client(endpoint)
        slow = [asyncio.create_task(ask([{"role": "user", "content": "?"}])) for _ in range(4)]
        await until(lambda: len(endpoint.requests) == 4, what="only some are asked at once")
        async with asyncio.timeout(60):
            assert await asyncio.to_thread(lambda: "done") == "done"
        for task in slow:
            task.cancel()
        await asyncio.gather(*slow, return_exceptions=True)


async def test_a_judge_that_hangs_is_left_and_its_price_assumed():
    async def hang(messages, response_format):
        await asyncio.Event().wait()

    policy = JudgePolicy("double", timeout=timedelta(seconds=0.02), tries=2)
    verdict = await judged(GROUP, hang, policy=policy)
    assert not verdict.judged
    assert "no answer in 0.02 s" in verdict.reason
    assert verdict.spend.calls == 2
    assert verdict.spend.prompt_tokens > 0


async def test_a_wrong_key_is_not_tried_again_and_never_repeated(caplog):
    caplog.set_level(logging.DEBUG)
    verdict, endpoint = await verdict_of(key="sk-wrong-4711")
    assert not verdict.judged
    assert "OPENAI_API_KEY" in verdict.reason
    assert len(endpoint.requests) == 1
    assert "4711" not in verdict.reason + caplog.text


@pytest.mark.parametrize(
    ("act", "error"),
    [
        (401, Denied),
        (403, Denied),
        ((429, {"error": {"message": "pay", "code": "insufficient_quota"}}), Denied),
        (429, Transient),
        (500, Transient),
        (404, Misuse),
        (302, Misuse),
        (413, Rejected),
        (418, Rejected),
        ((200, b"<html>"), Rejected),
        ((200, {"choices": []}), Rejected),
        ((200, [1]), Rejected),
        ((418, b"key: " + KEY.encode()), Rejected),
        ((418, {"error": "Bearer " + KEY}), Rejected),
        ((404, {"error": {"message": "no model for " + KEY}}), Misuse),
    ],
    ids=range(15),
)
async def test_every_answer_becomes_an_error_of_ours_without_the_key(act, error):
    async with Endpoint(act) as endpoint:
        with pytest.raises(error) as caught:
            await client(endpoint)([{"role": "user", "content": "hi"}], {})
    assert KEY not in "".join(traceback.format_exception(caught.value))


async def test_nobody_there_is_transient():
    async with Endpoint() as endpoint:
        pass
    with pytest.raises(Transient):
        await client(endpoint)([], {})


@pytest.mark.parametrize(
    ("message", "left_out"),
    [
        ("response_format json_schema is not supported", {"response_format"}),
        ("I do not understand", {"response_format"}),
        ("Unsupported value: temperature", {"temperature"}),
        ("max_tokens is not supported, use max_completion_tokens", {"max_tokens"}),
    ],
)
async def test_a_parameter_that_the_endpoint_refuses_is_left_out_from_then_on(message, left_out):
    async with Endpoint((400, {"error": {"message": message}})) as endpoint:
        ask = client(endpoint)
        assert (await judged(GROUP, ask)).judged
        assert (await judged(GROUP, ask, seed="other")).judged
    optional = {"response_format", "temperature", "max_tokens"}
    asked = [optional - request.keys() for request in endpoint.requests]
    assert asked == [set(), left_out, left_out]


async def test_an_endpoint_that_refuses_everything_is_asked_a_few_times_only():
    refusal = (400, {"error": {"message": "temperature max_tokens response_format"}})
    async with Endpoint(*[refusal] * 9) as endpoint:
        verdict = await judged(GROUP, client(endpoint))
    assert not verdict.judged
    assert len(endpoint.requests) == 4


def test_the_provider_is_dropped_only_at_openai():
    assert model_name_at_host("openai/gpt-4o-mini", "api.openai.com") == "gpt-4o-mini"
    assert model_name_at_host("openai/gpt-4o-mini", "127.0.0.1") == "openai/gpt-4o-mini"
    assert model_name_at_host("Qwen/Qwen3-14B", "127.0.0.1") == "Qwen/Qwen3-14B"


@pytest.mark.parametrize("key", ["sk-a\nb", "sk-ä", "sk-\x00"])
def test_a_key_that_no_header_carries_is_refused_without_being_shown(key):
    with pytest.raises(Misuse) as caught:
        OpenAI("m", key=key)
    assert key not in str(caught.value)


@pytest.mark.parametrize("url", ["ftp://x", "localhost:1", "https://u:secret@x/v1"])
def test_an_address_that_cannot_be_used_is_refused(url):
    with pytest.raises(Misuse) as caught:
        OpenAI("m", base_url=url)
    assert "secret" not in str(caught.value)


def test_the_key_is_not_in_its_description():
    assert KEY not in repr(OpenAI("m", key=KEY)) + str(vars(OpenAI("m", key=None)))


# ── cache and budget ─────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def cache(tmp_path):
    return JudgeCache(tmp_path / "judge")


async def test_the_same_group_is_paid_once(cache):
    first, _ = await verdict_of(cache=cache)
    again, endpoint = await verdict_of(500, cache=cache)
    assert again.scores == first.scores
    assert again.spend == JudgeSpend(cached=1)
    assert endpoint.requests == []


async def test_a_group_answered_at_the_second_asking_is_not_paid_again(cache):
    await verdict_of(half, cache=cache)
    again, endpoint = await verdict_of(500, cache=cache)
    assert again.judged
    assert endpoint.requests == []


async def test_an_answer_without_a_number_for_one_is_not_paid_again(cache):
    first, _ = await verdict_of(not_a_number_first, not_a_number_first, cache=cache)
    again, endpoint = await verdict_of(500, cache=cache)
    assert again.scores == first.scores
    assert again.lacking == first.lacking
    assert endpoint.requests == []


async def test_an_unusable_answer_is_not_kept(cache):
    await verdict_of(half, half, cache=cache)
    again, endpoint = await verdict_of(cache=cache)
    assert again.judged
    assert len(endpoint.requests) == 1


async def test_another_model_rubric_or_member_is_another_question(cache):
    judge = ObedientJudge()
    changed = group(*(body(n / 10) for n in range(5)))
    for asked, policy in [
        (GROUP, JudgePolicy("a")),
        (GROUP, JudgePolicy("b")),
        (GROUP, JudgePolicy("a", rubric="Be short.")),
        (changed, JudgePolicy("a")),
        (GROUP, JudgePolicy("a")),
    ]:
        await judged(asked, judge, policy=policy, cache=cache)
    assert len(judge.prompts) == 4


async def test_erasing_a_trajectory_takes_its_answers_along(cache):
    await verdict_of(cache=cache)
    assert await cache.forget({"somebody-else"}) == 0
    assert await cache.forget({GROUP.attempts[0].trajectory_id}) == 1
    verdict, _ = await verdict_of(cache=cache)
    assert verdict.spend.calls == 1


async def test_a_damaged_file_counts_as_no_answer(tmp_path):
    cache = JudgeCache(tmp_path)
    await verdict_of(cache=cache)
    (file,) = tmp_path.rglob("*.json")
    file.write_bytes(b"{")
    verdict, _ = await verdict_of(cache=cache)
    assert verdict.judged
    assert verdict.spend.calls == 1


async def test_old_answers_are_pruned_and_no_question_is_kept(tmp_path):
    cache = JudgeCache(tmp_path)
    await verdict_of(cache=cache)
    assert not any("binary search" in path.read_text() for path in tmp_path.rglob("*.json"))
    assert await cache.prune(datetime(2020, 1, 1, tzinfo=UTC)) == 0
    assert await cache.prune(datetime(2100, 1, 1, tzinfo=UTC)) == 1


async def test_a_path_cannot_be_smuggled_into_the_cache(tmp_path):
    with pytest.raises(Misuse):
        await JudgeCache(tmp_path).get("../../etc/passwd")


@pytest.mark.parametrize(
    ("budget", "word"),
    [
        (JudgeBudget(max_tokens=10_000), "10,000 tokens"),
        (JudgeBudget(max_usd=0.05, prompt_price=10.0, completion_price=10.0), "$0.05"),
    ],
)
async def test_the_budget_is_never_passed_and_its_end_is_said(budget, word):
    spent, verdicts = JudgeSpend(), []
    for n in range(40):
        verdict = await judged(GROUP, ObedientJudge(), seed=str(n), budget=budget, spent=spent)
        spent += verdict.spend
        verdicts.append(verdict)
    assert verdicts[0].judged
    assert not verdicts[-1].judged
    assert word in verdicts[-1].reason
    assert budget.overdrawn(spent) is None


async def test_a_budget_that_is_not_a_number_pays_for_nothing():
    verdict = await judged(GROUP, ObedientJudge(), budget=JudgeBudget(max_usd=float("nan")))
    assert not verdict.judged


async def test_a_group_that_is_too_small_is_not_judged():
    judge = ObedientJudge()
    verdict = await judged(group(body(), body()), judge)
    assert not verdict.judged
    assert "2 trajectories; 4 are needed" in verdict.reason
    assert judge.prompts == []


async def test_an_endpoint_without_token_counts_is_charged_by_size():
    bare = completion("", prompt_tokens=None, completion_tokens="many")

    def act(labels):
        return answer(dict.fromkeys(labels, 0.5))

    class Uncounted(Endpoint):
        async def _play(self, head, request):
            return await _without_counts(bare, act, request)

    async with Uncounted() as endpoint:
        verdict = await judged(GROUP, client(endpoint))
    assert verdict.judged
    assert verdict.spend.prompt_tokens > 300
    assert verdict.spend.completion_tokens > 30


async def _without_counts(bare, act, request):
    from judge_doubles import Reading

    bare["choices"][0]["message"]["content"] = act(Reading(request["messages"]).labels)
    return 200, bare
