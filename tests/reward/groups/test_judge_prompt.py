"""What the judge is shown: ground truth, the shared beginning once, a bounded text, opaque labels."""

import json
import re

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from judge_doubles import BiasedJudge, ObedientJudge, Reading, body, group, judged
from tests.support import trajectory

from upswing.contracts.outcome import EXAMPLE, Outcome
from upswing.reward.core.judge_prompt import JudgedAttempt, PromptLimits, build_prompt, quote_piece
from upswing.reward.judge import JudgePolicy

NONCE = "0123456789abcdef"


def prompt(*bodies, truth="", seed="s", **options):
    attempts = [JudgedAttempt(each["trajectory_id"], each) for each in bodies]
    return build_prompt(attempts, truth, seed=seed, nonce=NONCE, **options)


def user(made):
    return made.messages[1]["content"]


def test_the_rubric_is_the_operators():
    made = prompt(body(), body(), rubric="Prefer {brevity}.")
    assert "Prefer {brevity}." in made.messages[0]["content"]


async def test_ground_truth_reaches_the_judge():
    outcome = msgspec.convert(
        EXAMPLE | {"events": [{"text": "planted-event-5e1"}], "metadata": {"k": "planted-meta-77"}},
        Outcome,
    )
    bodies = [body(metadata={"ground_truth": {"token": f"planted-{n}-9c4"}}) for n in range(5)]
    judge = ObedientJudge()
    await judged(group(*bodies, outcome=outcome), judge)
    shown = user_text(judge)
    for token in (
        "planted-event-5e1",
        "planted-meta-77",
        "TRUMP",
        *(f"planted-{n}-9c4" for n in range(5)),
    ):
        assert token in shown


async def test_each_ground_truth_stands_with_its_own_trajectory():
    bodies = [body(metadata={"ground_truth": f"planted-{n}-9c4"}) for n in range(5)]
    made = prompt(*bodies)
    reading = Reading(made.messages)
    for label, name in made.labels.items():
        place = next(n for n, each in enumerate(bodies) if each["trajectory_id"] == name)
        assert f"planted-{place}-9c4" in reading.data[label]


def user_text(judge):
    return judge.prompts[0][1]["content"]


def test_a_shared_beginning_is_sent_once():
    bodies = [body() for _ in range(6)]
    for place, each in enumerate(bodies):
        each["task_context"]["instructions"] = "the-common-task"
        each["turns"][0]["action"]["raw_response"] = f"answer-{place}"
    shown = user(prompt(*bodies))
    assert shown.count("the-common-task") == 1
    assert shown.count("Implement binary search") == 1
    assert all(shown.count(f"answer-{place}") == 1 for place in range(6))


def test_alike_trajectories_are_still_listed_one_by_one():
    made = prompt(trajectory(), trajectory())
    assert len(made.labels) == 2
    assert all(f"begin {label} " in user(made) for label in made.labels)


def test_no_id_or_agents_name_is_shown():
    bodies = [body(agent_id=f"agent-name-{n}") for n in range(4)]
    whole = json.dumps(prompt(*bodies).messages)
    assert "agent-name" not in whole
    assert not any(each["trajectory_id"] in whole for each in bodies)


def test_long_texts_lose_their_middle_and_no_label():
    huge = "".join(f"line {n}\n" for n in range(200_000))
    bodies = [body() for _ in range(5)]
    for each in bodies:
        each["turns"][0]["result"]["output"] = each["trajectory_id"] + "\n" + huge
    made = prompt(*bodies, limits=PromptLimits(attempt=3_000, shared=1_000, truth=500))
    assert len(user(made)) < 5 * 4_000 + 2_000
    assert "line 199999" in user(made)
    assert "line 100000" not in user(made)
    assert "| left out | " in user(made)
    assert all(f"begin {label} ==" in user(made) for label in made.labels)


def test_facts_survive_a_long_story():
    document = body(metadata={"ground_truth": "planted-fact-3d"})
    document["turns"][0]["result"]["output"] = "\n" * 500_000
    assert "planted-fact-3d" in user(prompt(document, body(), limits=PromptLimits(attempt=2_000)))


@settings(max_examples=150, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_any_text_is_quoted_on_one_line_and_reads_back(text):
    quoted = quote_piece(text, NONCE)
    assert json.loads(quoted) == text
    assert len(quoted.splitlines()) == 1
    assert "<" not in quoted


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=80), min_size=4, max_size=4)
)
def test_every_line_of_a_prompt_is_ours(texts):
    bodies = [body() for _ in texts]
    for document, text in zip(bodies, texts, strict=True):
        document["turns"][0]["observation"]["content"] = text
        document["turns"][0]["action"]["tool_args"] = {text: text}
    reading = Reading(prompt(*bodies).messages)
    assert all(line == "" or " | nothing beyond" in line for _, line in reading.spoken)


def test_the_order_and_the_labels_depend_on_the_seed_alone():
    bodies = [body() for _ in range(8)]
    one, again, other = prompt(*bodies), prompt(*reversed(bodies)), prompt(*bodies, seed="t")
    assert one == again
    assert list(one.labels.values()) != list(other.labels.values())
    assert one.labels.keys() != other.labels.keys()
    assert all(re.fullmatch(r"[B-Z2-9]{4}", label) for label in one.labels)


async def test_over_seeds_everybody_comes_first_about_as_often():
    bodies = [body() for _ in range(5)]
    firsts = [next(iter(prompt(*bodies, seed=str(n)).labels.values())) for n in range(500)]
    assert all(60 < firsts.count(each["trajectory_id"]) < 140 for each in bodies)


async def test_asking_several_times_averages_a_liking_for_the_first_out():
    bodies = [body(0.3) for _ in range(5)]
    once = await judged(group(*bodies), BiasedJudge(), policy=JudgePolicy("double"))
    often = await judged(group(*bodies), BiasedJudge(), policy=JudgePolicy("double", repeats=40))
    assert spread(once) > 0.19
    assert spread(often) < 0.1


def spread(verdict):
    return max(verdict.scores.values()) - min(verdict.scores.values())


def test_the_wanted_answer_names_the_labels():
    made = prompt(body(), body())
    schema = made.response_format["json_schema"]["schema"]
    ids = schema["properties"]["scores"]["items"]["properties"]["id"]["enum"]
    assert ids == list(made.labels)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text("ab<\n", max_size=40), min_size=1, max_size=30), st.integers(100, 900))
def test_a_cut_story_keeps_both_ends_in_order_and_repeats_nothing(thoughts, budget):
    one, other = body(), body()
    one["turns"][0]["thought_process"] = [f"{n}:{text}" for n, text in enumerate(thoughts)]
    made = prompt(one, other, limits=PromptLimits(attempt=budget))
    label = next(label for label, name in made.labels.items() if name == one["trajectory_id"])
    lines = [line for line in user(made).splitlines() if line.startswith(f"{label} | turn 1")]
    numbers = [int(n) for line in lines for n in re.findall(r'thought \| "(\d+):', line)]
    assert numbers == sorted(set(numbers))
    assert sum(map(len, lines)) <= budget
    if "| left out |" not in user(made):
        assert numbers == list(range(len(thoughts)))
