"""The contracts: examples, schemas, and the law that types and schemas say the same."""

import copy
import json
from pathlib import Path

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.storms import sized

from upswing.contracts import (
    AlertNotice,
    DeadLetter,
    Feedback,
    ModelDeployed,
    ReportNotice,
    Reward,
    TrainingRequest,
    TrainingStatus,
    Trajectory,
    canonical,
    decode,
    encode,
)
from upswing.contracts.descriptions import DESCRIPTIONS
from upswing.contracts.examples import EXAMPLES
from upswing.contracts.schema import generated_files, json_schema_of
from upswing.contracts.topics import STREAMS, TOPICS
from upswing.errors import Reason, Rejected

FOLDER = Path(__file__).parents[2] / "contracts"
MESSAGES = [
    Trajectory,
    Reward,
    TrainingRequest,
    TrainingStatus,
    ModelDeployed,
    Feedback,
    DeadLetter,
    AlertNotice,
    ReportNotice,
]


@pytest.mark.parametrize("message", MESSAGES)
def test_the_example_of_every_message_is_read_and_written(message):
    read = decode(message, json.dumps(EXAMPLES[message]).encode())
    assert decode(message, encode(read)) == read


@pytest.mark.parametrize("message", MESSAGES)
def test_every_schema_is_valid_2020_12_and_accepts_its_example(message):
    made = json_schema_of(message)
    jsonschema.Draft202012Validator.check_schema(made)
    jsonschema.Draft202012Validator(made).validate(EXAMPLES[message])


def fields_of(tree, path=""):
    """Every property of a schema, wherever it stands; conditions name fields and declare none."""
    match tree:
        case dict():
            for name, field in tree.get("properties", {}).items():
                yield f"{path}.{name}", field
            for key, part in tree.items():
                if key not in {"examples", "default", "if", "then", "enum"}:
                    yield from fields_of(part, f"{path}/{key}")
        case list():
            for part in tree:
                yield from fields_of(part, path)


@pytest.mark.parametrize("message", MESSAGES)
def test_every_property_of_every_schema_has_a_description(message):
    told = {
        where: field.get("description", "") for where, field in fields_of(json_schema_of(message))
    }
    assert len(told) > 4
    assert [where for where, sentence in told.items() if not sentence.strip()] == []


def test_no_description_is_of_a_field_that_is_gone():
    made = [json_schema_of(message) for message in MESSAGES]
    known = {part["title"]: part["properties"] for part in made}
    known |= {name: part["properties"] for each in made for name, part in each["$defs"].items()}
    told = {(name, field) for name, fields in DESCRIPTIONS.items() for field in fields}
    assert told <= {(name, field) for name, fields in known.items() for field in fields}


def test_the_generated_files_are_up_to_date():
    made = generated_files()
    assert {path.name for path in FOLDER.iterdir()} == set(made)
    for name, body in made.items():
        assert (FOLDER / name).read_bytes() == body, f"run scripts/contracts: {name} is stale"


def covers(subjects, subject):
    """With a wildcard at the end, all that begin so."""
    return subject == subjects or (subjects.endswith(">") and subject.startswith(subjects[:-1]))


def test_every_topic_with_a_stream_is_captured_by_that_stream_and_no_other():
    for topic in TOPICS:
        holders = [
            stream.name
            for stream in STREAMS
            if any(covers(each, topic.subject) for each in stream.subjects)
        ]
        assert holders == ([topic.stream] if topic.stream else [])


def test_a_manual_training_request_as_operators_write_it_is_accepted():
    request = decode(TrainingRequest, json.dumps(EXAMPLES[TrainingRequest]).encode())
    assert request.priority == "normal"
    assert request.training_config.dataset.sample_size == 5000


def test_open_objects_keep_what_they_do_not_know():
    document = copy.deepcopy(EXAMPLES[Trajectory])
    document["metadata"]["window_id"] = "2025-12-08T13:00"
    document["task_context"]["ticket"] = {"n": [1, 2]}
    read = decode(Trajectory, json.dumps(document).encode())
    written = json.loads(encode(read))
    assert written["metadata"]["window_id"] == "2025-12-08T13:00"
    assert written["task_context"]["ticket"] == {"n": [1, 2]}


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", Reason.MALFORMED),
        (b"{", Reason.MALFORMED),
        (b'{"session_id": "\xff"}', Reason.MALFORMED),
        (b'{"session_id": NaN}', Reason.NOT_A_NUMBER),
        (b'{"metadata": {"model": "m", "temperature": -Infinity}}', Reason.NOT_A_NUMBER),
        (b"[]", Reason.SCHEMA),
        (b'{"metadata": ' + b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"}", Reason.TOO_DEEP),
    ],
)
def test_bad_bytes_have_a_named_reason(raw, reason):
    with pytest.raises(Rejected) as caught:
        decode(Trajectory, raw)
    assert caught.value.reason is reason


def test_a_profile_nobody_knows_is_read_but_never_written():
    document = EXAMPLES[Trajectory] | {"subordinate_profile": "gardener"}
    read = decode(Trajectory, json.dumps(document).encode())
    with pytest.raises(Rejected, match="subordinate_profile"):
        encode(read)


def test_the_canonical_form_does_not_depend_on_the_order_of_keys():
    assert canonical({"b": 1, "a": {"d": 2, "c": 3}}) == canonical({"a": {"c": 3, "d": 2}, "b": 1})


# ── types and JSON Schema agree ──────────────────────────────────────────────────────────────

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 200),
    st.sampled_from([10**18, 2**63, 2**64, 10**30, -(10**30)]),
    st.floats(-3, 150, allow_nan=False),
    st.integers(-2, 9).map(float),
    st.text(max_size=6),
    st.sampled_from(
        [
            "2025-12-08T13:00:00Z",
            "2025-12-08t13:00:00z",
            "2025-12-08 13:00:00+0200",
            "2025-02-29T00:00:00Z",
            "2024-02-29T00:00:00Z",
            "2025-12-08T13:00:00",
            "2025-12-08T24:00:00Z",
            "2025-12-08T13:00:60Z",
            "2025-12-08T13:00:00.123456789Z",
            "2025-12-08T13:00:00Z\n",
            "0000-01-01T00:00:00Z",
            "2025-13-01T00:00:00Z",
            "2025-12-08T13:00:00+24:00",
            "2025-12-08T13:00:00+02:0",
            "1900-02-29T00:00:00Z",
            "0D4C7A52-7F2E-4C39-9A4E-6F8D2F0B8A11",
            "0d4c7a527f2e4c399a4e6f8d2f0b8a11",
            "0d4c7a52-7f2e4c39-9a4e-6f8d2f0b8a11",
            "{0d4c7a52-7f2e-4c39-9a4e-6f8d2f0b8a11}",
            "coding",
            "tool_call",
            "manual",
            "urgent",
            "grpo",
            "comment",
            "rating",
            "upswing",
            "http://x/y",
            "http://x/ y",
            "job/1",
            "job 1",
            "a" * 128,
            "a" * 129,
            "",
            "schema",
            "f" * 64,
            "F" * 64,
        ]
    ),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["a", "type", "content", "score", "start"]), inner, max_size=3
        )
    ),
    max_leaves=4,
)
KEYS = [
    "rating",
    "comment",
    "trajectory_id",
    "episode_id",
    "inference_id",
    "priority",
    "evaluation",
    "error",
    "output",
    "normalization",
    "filter",
    "compute",
    "new",
    "domain",
    "user_id",
]


def places(tree, path=()):
    yield path
    items = (
        tree.items()
        if isinstance(tree, dict)
        else enumerate(tree)
        if isinstance(tree, list)
        else ()
    )
    for key, value in items:
        yield from places(value, (*path, key))


def nudge(value):
    match value:
        case bool():
            return not value
        case int() | float():
            return value / 2 if value % 2 else value + 1
        case str():
            return value + "x"
        case _:
            return value


def with_change(document, path, change):
    """A copy in which `change` was made to what stands at this place."""
    made = copy.deepcopy(document)
    parent = made
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = change(parent[path[-1]])
    return made


def refusal(message, document):
    """What is wrong with it; None: nothing."""
    try:
        decode(message, json.dumps(document).encode())
    except Rejected as error:
        return error.detail
    return None


@pytest.mark.parametrize("message", MESSAGES)
def test_a_refusal_names_what_is_allowed_there(message):
    """Of every object its known fields, and of every closed set its members; also in objects that are open."""
    document = EXAMPLES[message]
    found = [path for path in places(document) if path]
    unknown = [refusal(message, document | {"surprise": 1})]
    enums = []
    for path in found:
        unknown.append(
            refusal(
                message,
                with_change(
                    document,
                    path,
                    lambda value: value | {"surprise": 1} if isinstance(value, dict) else value,
                ),
            )
        )
        enums.append(
            refusal(
                message,
                with_change(
                    document,
                    path,
                    lambda value: "surprise" if isinstance(value, str) else value,
                ),
            )
        )
    for detail in filter(None, unknown):
        assert "unknown field" not in detail or "unknown field `surprise`, known are " in detail
    assert unknown[0].count(", ") > 2
    for detail in filter(None, enums):
        assert "value 'surprise'" not in detail or "value 'surprise', allowed are " in detail


def test_the_domains_are_named_when_another_is_sent():
    document = copy.deepcopy(EXAMPLES[Trajectory])
    document["task_context"]["domain"] = "gardening"
    assert refusal(Trajectory, document) == (
        "Invalid enum value 'gardening', allowed are coding, data_analysis, debugging, general, research, writing"
        " - at `$.task_context.domain`."
    )


def mutate(draw, document):
    path = draw(st.sampled_from(list(places(document))))
    if not path:
        document[draw(st.sampled_from(KEYS))] = draw(VALUES)
        return
    parent = document
    for key in path[:-1]:
        parent = parent[key]
    match draw(st.sampled_from(["nudge", "nudge", "replace", "delete", "add"])):
        case "nudge":
            parent[path[-1]] = nudge(parent[path[-1]])
        case "replace":
            parent[path[-1]] = draw(VALUES)
        case "delete":
            del parent[path[-1]]
        case "add":
            target = parent[path[-1]]
            if isinstance(target, dict):
                target[draw(st.sampled_from(KEYS))] = draw(VALUES)
            elif isinstance(target, list):
                target.append(draw(VALUES))


@st.composite
def mutated(draw):
    message = draw(st.sampled_from(MESSAGES))
    document = copy.deepcopy(EXAMPLES[message])
    for _ in range(draw(st.integers(1, 2))):
        mutate(draw, document)
    return message, document


VALIDATORS = {
    message: jsonschema.Draft202012Validator(json_schema_of(message)) for message in MESSAGES
}
_seen = {"agreed on yes": 0, "agreed on no": 0}


@given(mutated())
def _types_and_schema_agree(case):
    message, document = case
    try:
        decode(message, json.dumps(document).encode())
        taken = True
    except Rejected as error:
        taken = False if error.reason is Reason.SCHEMA else error
    assert VALIDATORS[message].is_valid(document) == taken, document
    _seen["agreed on yes" if taken else "agreed on no"] += 1


@sized("documents", 800, 10_000)
def test_types_and_json_schema_give_the_same_verdict_on_mutated_documents(documents):
    many = settings(
        max_examples=documents,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    many(_types_and_schema_agree)()
    assert min(_seen.values()) > 0.15 * documents, f"the mutations are one-sided: {_seen}"
