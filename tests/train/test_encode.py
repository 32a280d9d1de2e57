"""Trajectories in tokens: whatever the template looks like, only what the model said trains."""

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from upswing.dataset.sample import Sample, SampleTurn
from upswing.train.bases.tiny.tokenizer import build_tokenizer
from upswing.train.core.recipe import Recipe
from upswing.train.learn.encode import encode_samples

CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
LLAMA = (
    "{{ '<|bos|>' }}{% for m in messages %}{{ '<|head|>' + m['role'] + '<|tail|>\n\n' + "
    "(m['content'] | trim) + '<|eot|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|head|>assistant<|tail|>\n\n' }}{% endif %}"
)
FORGETFUL = (
    "{% for m in messages %}{% set said = m['content'] %}"
    "{% if m['role'] == 'assistant' and not loop.last %}"
    "{% set said = said.split('</think>')[-1] %}{% endif %}"
    "{{ '<|im_start|>' + m['role'] + '\n' + said + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
"""Keeps thoughts only in the newest message, as reasoning models do."""
THINKING = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' }}"
    "{% if m['role'] == 'assistant' %}{{ '<think>\n\n</think>\n\n' }}{% endif %}"
    "{{ m['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
"""Writes an empty thought before each answer."""
STRICT = (
    "{% for m in messages %}{% if m['role'] != ['user', 'assistant'][loop.index0 % 2] %}"
    "{{ raise_exception('Roles must alternate.') }}{% endif %}"
    "{{ '[' + m['role'] + ']' + m['content'] + ('<|eot|>' if m['role'] == 'assistant' else '') }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '[assistant]' }}{% endif %}"
)
"""Has no system, and no tools."""
TOOLS = CHATML.replace("m['role'] +", "('tool_response' if m['role'] == 'tool' else m['role']) +")
TEMPLATES = {
    "chatml": (CHATML, "<|im_end|>"),
    "llama": (LLAMA, "<|eot|>"),
    "forgetful": (FORGETFUL, "<|im_end|>"),
    "thinking": (THINKING, "<|im_end|>"),
    "strict": (STRICT, "<|eot|>"),
    "tools": (TOOLS, "<|im_end|>"),
}
MARKS = ["<|im_start|>", "<|im_end|>", "<|bos|>", "<|head|>", "<|tail|>", "<|eot|>"]


def tokenizer_with(name):
    made = build_tokenizer()
    if name == "tiny":
        return made
    made.add_special_tokens({"extra_special_tokens": MARKS})
    made.chat_template = TEMPLATES[name][0]
    return made


TOKENIZERS = {name: tokenizer_with(name) for name in ("tiny", *TEMPLATES)}
ENDS = {"tiny": "<|end|>"} | {name: end for name, (_, end) in TEMPLATES.items()}


def turn(seen, said=None, **more):
    action = {"type": "response"} if said is None else {"type": "response", "raw_response": said}
    return SampleTurn(**{"observation": seen, "action": action, "success": True} | more)


def sample(*turns, instructions="answer refund or hold", **more):
    told = {
        "trajectory_id": "t-1",
        "agent_id": "a-1",
        "instructions": instructions,
        "turns": [*turns],
        "reward": 0.5,
        "raw_total": 0.4,
        "window_id": "w",
        "scenario_id": "s",
        "model": "m-1",
        "task_id": "task-1",
    }
    return Sample(**told | more)


def encoded(given_, name="tiny", **knobs):
    return encode_samples([given_], TOKENIZERS[name], Recipe(**knobs))


def one(given_, name="tiny", **knobs):
    (example,) = encoded(given_, name, **knobs).examples
    assert len(example.ids) == len(example.trained) == len(example.turns)
    return example


def said_of(example, name="tiny"):
    """What trains, turn by turn, as text."""
    return [
        TOKENIZERS[name].decode(
            [
                i
                for i, t, own in zip(example.ids, example.turns, example.trained, strict=True)
                if own and t == number
            ]
        )
        for number in range(max(example.turns) + 1)
    ]


def text_of(example, name="tiny"):
    return TOKENIZERS[name].decode(example.ids)


TALK = sample(turn("my lamp broke", "hold"), turn("it is still broken", "refund"))


# ── text ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", TOKENIZERS)
def test_only_what_the_model_said_and_its_end_trains(name):
    example = one(TALK, name)
    assert said_of(example, name) == [f"hold{ENDS[name]}", f"refund{ENDS[name]}"]
    assert example.logps is None
    assert not example.exact


@pytest.mark.parametrize("name", ["tiny", "chatml", "llama", "thinking", "tools"])
def test_the_tokens_are_those_of_the_template(name):
    messages = [
        {"role": "system", "content": "answer refund or hold"},
        {"role": "user", "content": "my lamp broke"},
        {"role": "assistant", "content": "hold"},
        {"role": "user", "content": "it is still broken"},
        {"role": "assistant", "content": "refund"},
    ]
    whole = TOKENIZERS[name].apply_chat_template(messages, return_dict=False)
    ids = one(TALK, name).ids
    assert list(ids) == whole[: len(ids)]
    assert TOKENIZERS[name].decode(whole[len(ids) :]).strip() == ""


def test_what_the_template_writes_behind_an_answer_belongs_to_the_next_turn():
    example = one(TALK, "chatml")
    first = example.turns.index(1)
    assert TOKENIZERS["chatml"].decode(example.ids[first : first + 1]) == "\n"
    assert text_of(example, "chatml").endswith("refund<|im_end|>")


def test_what_the_template_writes_before_an_answer_does_not_train():
    assert "<think>\n\n</think>\n\nrefund" in text_of(one(TALK, "thinking"), "thinking")


@given(st.lists(st.tuples(st.text(), st.text()), min_size=1, max_size=4), st.text())
def test_whatever_is_said_trains_and_nothing_else(talk, instructions):
    if any("<|" in text for pair in talk for text in pair):
        return
    turns = [turn(seen, said) for seen, said in talk]
    example = one(sample(*turns, instructions=instructions))
    assert said_of(example) == [f"{said}<|end|>" for _, said in talk]


@given(st.lists(st.tuples(st.text(max_size=20), st.text(max_size=20)), min_size=1, max_size=3))
def test_a_template_that_trims_changes_only_blanks(talk):
    if any("<|" in text for pair in talk for text in pair):
        return
    example = one(sample(*[turn(seen, said) for seen, said in talk]), "llama")
    assert [text.strip() for text in said_of(example, "llama")] == [
        f"{said.strip()}<|eot|>" for _, said in talk
    ]


def test_a_template_that_rewrites_history_is_taken_apart_and_counted():
    talk = sample(
        turn("my lamp broke", "<think>hm</think>hold"),
        turn("still", "<think>so</think>refund"),
        turn("thanks", "<think></think>close"),
    )
    found = encoded(talk, "forgetful")
    (example,) = found.examples
    assert found.pieced == 1
    assert said_of(example, "forgetful") == [
        "<think>hm</think>hold<|im_end|>",
        "<think>so</think>refund<|im_end|>",
        "<think></think>close<|im_end|>",
    ]
    assert "hold<|im_end|>\n<|im_start|>user\nstill<|im_end|>\n<|im_start|>assistant\n" in text_of(
        example, "forgetful"
    )
    assert encoded(TALK, "forgetful").pieced == encoded(TALK, "chatml").pieced == 0


def test_a_mark_that_was_recorded_with_the_text_does_not_end_it_twice():
    talk = sample(turn("my lamp broke", "hold<|end|>"), turn("still", "refund <|end|>\n"))
    assert said_of(one(talk)) == ["hold<|end|>", "refund <|end|>"]


def test_a_mark_in_an_observation_trains_nothing():
    talk = sample(turn("<|end|><|assistant|>refund<|end|>", "hold"))
    assert said_of(one(talk)) == ["hold<|end|>"]


# ── messages ─────────────────────────────────────────────────────────────────────────────────────


def test_instructions_come_first_as_the_system():
    assert text_of(one(TALK)).startswith("<|system|>answer refund or hold<|end|><|user|>my lamp")


@pytest.mark.parametrize("instructions", ["my lamp broke", " my lamp broke\n", "", "  "])
def test_instructions_that_are_the_first_observation_are_not_repeated(instructions):
    talk = sample(turn("my lamp broke", "hold"), instructions=instructions)
    assert text_of(one(talk)).startswith("<|user|>my lamp broke<|end|>")


def test_a_template_without_a_system_gets_the_instructions_with_the_first_message():
    start = "[user]answer refund or hold\n\nmy lamp broke[assistant]hold<|eot|>[user]it is"
    assert text_of(one(TALK, "strict"), "strict").startswith(start)


@pytest.mark.parametrize(
    ("name", "role"), [("tiny", "<|user|>"), ("chatml", ">user\n"), ("tools", ">tool_response\n")]
)
def test_a_tool_speaks_as_a_tool_only_where_the_template_knows_tools(name, role):
    talk = sample(turn("go", "hold"), turn("4 passed", "refund", observation_type="tool_result"))
    assert f"{role}4 passed" in text_of(one(talk, name), name)


def test_objects_are_written_as_json():
    talk = sample(turn({"price": 3, "word": "zürich"}, "hold"))
    assert '{"price":3,"word":"zürich"}<|end|>' in text_of(one(talk))


def test_a_tool_call_without_its_text_is_written_as_json():
    call = {"type": "tool_call", "tool_name": "sell", "tool_args": {"n": 2}}
    talk = sample(
        SampleTurn("go", call, success=True),
        SampleTurn("on", call, success=True, thoughts=["it falls"]),
    )
    assert said_of(one(talk)) == [
        '{"tool_name":"sell","tool_args":{"n":2}}<|end|>',
        '{"thoughts":["it falls"],"tool_name":"sell","tool_args":{"n":2}}<|end|>',
    ]


CALLING = (
    "{% if tools %}{{ '<|im_start|>system\n' }}{% for t in tools %}{{ t | tojson }}{% endfor %}"
    "{{ '<|im_end|>\n' }}{% endif %}"
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] }}"
    "{% for c in m.tool_calls or [] %}{{ '\n' if m['content'] or not loop.first else '' }}"
    "{{ '<call>' + c['function']['name'] + ' ' + (c['function']['arguments'] | tojson) + '</call>' }}"
    "{% endfor %}{{ '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
"""Knows tools, and writes their calls in a form of its own."""
SELL = {"type": "tool_call", "tool_name": "sell", "tool_args": {"n": 2}}
SCHEMA = {"type": "function", "function": {"name": "sell", "parameters": {"type": "object"}}}


def calling(given_):
    made = build_tokenizer()
    made.add_special_tokens({"extra_special_tokens": MARKS})
    made.chat_template = CALLING
    TOKENIZERS["calling"] = made
    (example,) = encode_samples([given_], made, Recipe()).examples
    return example


def test_a_tool_call_is_written_as_the_template_writes_it():
    talk = sample(
        SampleTurn("go", SELL, success=True),
        SampleTurn("on", SELL, success=True, thoughts=["it falls"]),
        SampleTurn("and", {**SELL, "raw_response": "Now."}, success=True),
        SampleTurn("so", {**SELL, "raw_response": "<call>sell {}</call>"}, success=True),
    )
    call = '<call>sell {"n": 2}</call><|im_end|>'
    wanted = [call, f"it falls\n{call}", f"Now.\n{call}", "<call>sell {}</call><|im_end|>"]
    spaced = [text.replace(" ", "") for text in said_of(calling(talk), "calling")]
    assert spaced == [text.replace(" ", "") for text in wanted]


def test_several_calls_of_one_turn_are_all_written():
    both = [{"id": "1", "name": "sell", "args": {"n": 2}}, {"id": "2", "name": "buy", "args": {}}]
    action = {"type": "tool_call", "tool_name": "sell+buy", "tool_args": {"calls": both}}
    (said,) = said_of(calling(sample(SampleTurn("go", action, success=True))), "calling")
    assert "<call>sell" in said
    assert "<call>buy" in said


def test_a_call_beside_words_is_not_lost_where_the_template_has_no_form_for_it():
    talk = sample(SampleTurn("go", {**SELL, "raw_response": "Now."}, success=True))
    assert said_of(one(talk)) == ['Now.\n{"tool_name":"sell","tool_args":{"n":2}}<|end|>']


def test_the_model_reads_of_its_tools_what_it_read_when_it_acted():
    talk = sample(turn("go", "hold"), turn("on", "hold"), tools=[SCHEMA])
    told = [
        {"role": "system", "content": "answer refund or hold"},
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "hold"},
        {"role": "user", "content": "on"},
        {"role": "assistant", "content": "hold"},
    ]
    example = calling(talk)
    tokenizer = TOKENIZERS["calling"]
    whole = tokenizer.apply_chat_template(told, tools=[SCHEMA], return_dict=False)
    assert list(example.ids) == whole[: len(example.ids)]
    assert "sell" in tokenizer.decode(example.ids)
    other = calling(msgspec.structs.replace(talk, tools=None))
    assert "sell" not in tokenizer.decode(other.ids)
    assert said_of(example, "calling") == said_of(other, "calling")


def test_conversations_with_other_tools_do_not_share_what_was_rendered():
    buy = {"type": "function", "function": {"name": "buy", "parameters": {}}}
    with_sell = sample(turn("go", "hold"), tools=[SCHEMA])
    with_buy = sample(turn("go", "hold"), tools=[buy])
    made = tokenizer_with("chatml")
    made.chat_template = CALLING
    one_, other = encode_samples([with_sell, with_buy], made, Recipe()).examples
    assert ("sell" in made.decode(one_.ids), "sell" in made.decode(other.ids)) == (True, False)


def test_a_template_without_tools_is_not_given_any():
    assert one(msgspec.structs.replace(TALK, tools=[SCHEMA])) == one(TALK)


def test_an_action_without_words_is_in_the_conversation_but_does_not_train():
    example = one(sample(turn("go"), turn("on", "refund")))
    assert said_of(example) == ["", "refund<|end|>"]
    assert "<|user|>go<|end|><|assistant|><|end|><|user|>on" in text_of(example)


def test_an_empty_answer_trains_its_end():
    assert said_of(one(sample(turn("go", "")))) == ["<|end|>"]


def test_a_trajectory_with_nothing_to_train_on_is_dropped_with_a_sentence():
    found = encoded(sample(turn("go"), turn("on")))
    assert found.examples == ()
    assert "Nothing in it was said" in found.dropped["t-1"]


def test_a_conversation_that_the_template_refuses_is_dropped_with_its_sentence():
    picky = build_tokenizer()
    picky.chat_template = (
        "{% if 'zzz' in messages[-1]['content'] %}{{ raise_exception('no zzz') }}{% endif %}"
        + picky.chat_template
    )
    found = encode_samples([sample(turn("zzz", "hold")), TALK], picky, Recipe())
    assert "no zzz" in found.dropped["t-1"]
    assert len(found.examples) == 1


def test_a_reward_that_is_no_number_is_dropped():
    found = encoded(msgspec.structs.replace(TALK, reward=math.nan))
    assert found.dropped == {"t-1": "Its reward is not a number."}


# ── a tokenizer that writes a blank before everything ────────────────────────────────────────────


def blank_first():
    """Splits at blanks, and puts one before any text, as those of the first Llamas do."""
    pieces = ["<unk>", *(f"▁{word}" for word in ("", "[user]", "[bot]", "go", "on", "hold", "buy"))]
    core = Tokenizer(models.WordLevel({piece: n for n, piece in enumerate(pieces)}, "<unk>"))
    core.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    core.decoder = decoders.Metaspace(prepend_scheme="always")
    made = PreTrainedTokenizerFast(tokenizer_object=core, unk_token="<unk>", eos_token="</s>")
    made.chat_template = (
        "{% for m in messages %}"
        "{{ ('[bot] ' if m['role'] == 'assistant' else '[user] ') + m['content'] }}"
        "{{ '</s> ' if m['role'] == 'assistant' else ' ' }}"
        "{% endfor %}{% if add_generation_prompt %}[bot]{% endif %}"
    )
    return made


def test_tokens_are_cut_from_the_whole_where_parts_would_differ():
    tokenizer = blank_first()
    found = encode_samples(
        [sample(turn("go", "hold"), turn("on", "buy"), instructions="")], tokenizer, Recipe()
    )
    (example,) = found.examples
    told = [
        {"role": role, "content": text}
        for role, text in (
            ("user", "go"),
            ("assistant", "hold"),
            ("user", "on"),
            ("assistant", "buy"),
        )
    ]
    whole = tokenizer.apply_chat_template(told, return_dict=False)
    assert list(example.ids) == whole[: len(example.ids)]
    trained = [n for n, own in zip(example.ids, example.trained, strict=True) if own]
    assert [tokenizer.decode([n]).strip() for n in trained] == ["hold", "</s>", "buy", "</s>"]
    assert found.pieced == 0


# ── recorded tokens ──────────────────────────────────────────────────────────────────────────────


def ids_of(text):
    return TOKENIZERS["tiny"](text, add_special_tokens=False)["input_ids"]


def recorded(*turns):
    """Each turn: what was new to read, what was said, and the logprobs of that."""
    return sample(
        *(
            turn(
                "?",
                said.removesuffix("<|end|>"),
                token_ids=ids_of(heard) + ids_of(said),
                logprobs=logps,
            )
            for heard, said, logps in turns
        )
    )


EXACT = recorded(
    ("<|user|>go<|assistant|>", "hold<|end|>", [-0.5, -0.25]),
    ("<|user|>on<|assistant|>", "buy<|end|>", [-1.0, 0.0]),
)


def test_recorded_tokens_are_used_exactly():
    example = one(EXACT)
    assert example.exact
    assert text_of(example) == "<|user|>go<|assistant|>hold<|end|><|user|>on<|assistant|>buy<|end|>"
    assert example.trained == (False, False, False, True, True) * 2
    assert example.logps == (0, 0, 0, -0.5, -0.25, 0, 0, 0, -1, 0)
    assert example.turns == (0,) * 5 + (1,) * 5


def changed(number, **fields):
    turns = list(EXACT.turns)
    turns[number] = msgspec.structs.replace(turns[number], **fields)
    return msgspec.structs.replace(EXACT, turns=turns)


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        ({"logprobs": [-0.1] * 6}, "more logprobs than tokens"),
        ({"logprobs": [-0.1] * 5}, "before it read"),
        ({"logprobs": [-0.1, 0.01]}, "no logprob"),
        ({"logprobs": [-0.1, math.nan]}, "no logprob"),
        ({"logprobs": [-math.inf, -0.1]}, "no logprob"),
        ({"token_ids": [2, 3, 4, 5, 10**6]}, "vocabulary"),
        ({"token_ids": [2, 3, 4, -5, 6]}, "vocabulary"),
        ({"token_ids": [2, 3, 4, 5, 6]}, "do not spell"),
        ({"token_ids": []}, "more logprobs than tokens"),
    ],
)
def test_tokens_that_cannot_be_true_are_not_believed(bad, sentence):
    found = encoded(changed(0, **bad))
    (example,) = found.examples
    assert not example.exact
    assert example.logps is None
    assert said_of(example) == ["hold<|end|>", "buy<|end|>"]
    assert [sentence in told for told in found.doubted] == [True]


@pytest.mark.parametrize("missing", [{"token_ids": None}, {"logprobs": None}])
def test_when_some_turn_has_no_tokens_all_are_made_anew(missing):
    found = encoded(changed(1, **missing))
    (example,) = found.examples
    assert not example.exact
    assert text_of(example).startswith("<|system|>answer refund or hold<|end|><|user|>?<|end|>")
    assert found.doubted == {}


def test_a_logprob_that_is_rounded_above_zero_becomes_zero():
    assert one(changed(0, logprobs=[1e-7, -0.1])).logps[3:5] == (0.0, -0.1)


def test_a_reply_that_was_cut_off_has_no_end_to_train():
    example = one(recorded(("<|user|>go<|assistant|>", "hold", [-0.5])))
    assert example.exact
    assert said_of(example) == ["hold"]


def test_an_episode_of_a_world_is_encoded_as_it_was_played():
    from upswing.worlds.episode import Episode, EpisodeStep
    from upswing.worlds.recording import to_trajectory
    from upswing.worlds.triage import Triage
    from upswing.worlds.world import WorldObservation, WorldOutcome

    world = Triage(check_first=True)
    task = world.training[0]
    steps = tuple(
        EpisodeStep(
            WorldObservation(seen),
            said,
            tuple(ids_of(f"<|user|>{seen}<|end|><|assistant|>")),
            tuple(ids_of(f"{said}<|end|>")),
            (-1.5, -0.5),
        )
        for seen, said in ((task.text, "check"), ("the customer is calm", task.answer))
    )
    episode = Episode(world.name, task, "tiny", 0, 1.0, steps, WorldOutcome(True, 1.0, "closed"))
    example = one(_stored(to_trajectory, episode))
    assert example.exact
    assert example.ids == episode.ids
    assert said_of(example) == ["check<|end|>", f"{task.answer}<|end|>"]


def _stored(to_trajectory, episode):
    from datetime import UTC, datetime

    from upswing.dataset.sample import build_sample

    at = datetime(2026, 1, 1, tzinfo=UTC)
    body = to_trajectory(
        episode,
        trajectory_id="t-1",
        agent_id="a",
        session_id="s",
        window_id="w",
        started=at,
        ended=at,
    )
    return build_sample(body, reward=1.0, raw_total=1.0, window_id="w", scenario_id="s")


# ── length, and what goes along ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("talk", [TALK, EXACT])
def test_a_trajectory_that_is_too_long_keeps_its_reward_and_trains_nothing(talk):
    long = msgspec.structs.replace(talk, turn_rewards=[0.1, 0.2])
    whole = one(long)
    assert not whole.masked
    found = encoded(long, max_tokens=len(whole.ids) - 1)
    (example,) = found.examples
    assert (found.masked, found.dropped) == (1, {})
    assert example.masked
    assert (example.ids, example.trained, example.turns) == ((), (), ())
    assert example.turn_rewards is None
    assert (example.reward, example.group) == (whole.reward, whole.group)
    assert one(long, max_tokens=len(whole.ids)) == whole


def test_one_whose_first_turn_is_too_long_is_masked_too():
    found = encoded(sample(turn("lamp " * 50, "hold")), max_tokens=32)
    assert (found.dropped, found.masked) == ({}, 1)


def test_what_was_not_said_by_the_model_is_dropped_however_long_it_is():
    found = encoded(sample(turn("lamp " * 50)), max_tokens=32)
    assert (len(found.dropped), found.masked) == (1, 0)


@pytest.mark.parametrize(("told", "taken"), [(0.7, 0.7), (None, 1.0), (0.0, 1.0), (1.0, 1.0)])
def test_the_temperature_that_sampled_goes_along_and_greedy_answers_count_as_sampled(told, taken):
    talk = msgspec.structs.replace(TALK, temperature=told)
    assert one(talk).temperature == taken
    assert one(talk, at_temperature=False).temperature == 1.0


def test_what_a_loss_needs_goes_along():
    talk = msgspec.structs.replace(TALK, turn_rewards=[0.1, 0.2])
    example = one(talk)
    assert (example.trajectory_id, example.group, example.task) == ("t-1", "w/s", "task-1")
    assert (example.reward, example.turn_rewards) == (0.5, (0.1, 0.2))
    assert (example.agent_id, example.behaviour, example.domain) == ("a-1", "m-1", "general")
    assert one(msgspec.structs.replace(TALK, turn_rewards=[0.1])).turn_rewards is None


def test_samples_keep_their_order():
    samples = [msgspec.structs.replace(TALK, trajectory_id=f"t-{n}") for n in range(9)]
    found = encode_samples(samples, TOKENIZERS["tiny"], Recipe())
    assert [example.trajectory_id for example in found.examples] == [f"t-{n}" for n in range(9)]
