"""Admission: what enters, in which form, and what is refused with which word."""

import copy
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support import raw, trajectory

from upswing.collect.core.admit import AdmissionLimits, admit, admit_feedback
from upswing.collect.core.dead_letter import payload_of
from upswing.collect.core.enrich import complexity_of, domain_of
from upswing.collect.core.evaluate import MessageKind, evaluate
from upswing.contracts import Feedback, decode_trajectory
from upswing.contracts.dead import PAYLOAD_LIMIT
from upswing.contracts.examples import EXAMPLES
from upswing.errors import Reason, Rejected
from upswing.redact import RedactionFailed, Redactor
from upswing.redact.identity import pseudonym_for

REDACTOR = Redactor()
LIMITS = AdmissionLimits()


def taken(document, **limits):
    return admit(raw(document), REDACTOR, AdmissionLimits(**limits))


def refused(document, **limits):
    with pytest.raises(Rejected) as caught:
        taken(document, **limits)
    return caught.value.reason


def with_turns(*changes):
    document = trajectory()
    first = document["turns"][0]
    document["turns"] = [{**copy.deepcopy(first), **change} for change in changes]
    return document


def test_a_clean_trajectory_is_stored_as_it_is():
    document = trajectory()
    admission = taken(document)
    body = json.loads(admission.admitted.body)
    assert not admission.redacted
    assert body["turns"][0]["action"] == document["turns"][0]["action"]
    assert body["metadata"] == document["metadata"]


def test_the_same_content_has_the_same_hash_however_it_is_spelled():
    document = trajectory()
    other = dict(reversed(document.items())) | {"start_timestamp": "2025-12-08T13:00:00.000+00:00"}
    spaced = json.dumps(other, indent=3).encode()
    assert (
        taken(document).admitted.content_hash
        == admit(spaced, REDACTOR, LIMITS).admitted.content_hash
    )


def test_the_stored_form_comes_back_with_the_same_hash():
    document = trajectory(metadata={"user_id": "bob@example.org", "note": "ask eve@example.org"})
    first = taken(document)
    again = admit(first.admitted.body, REDACTOR, LIMITS)
    assert first.redacted
    assert not again.redacted
    assert again.admitted.content_hash == first.admitted.content_hash


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (with_turns({"turn_id": 2}, {"turn_id": 1}), Reason.TURN_ORDER),
        (with_turns({"turn_id": 1}, {"turn_id": 1}), Reason.TURN_ORDER),
        (
            with_turns({"turn_id": 1}, {"turn_id": 2, "timestamp": "2025-12-08T12:00:00Z"}),
            Reason.TIME_ORDER,
        ),
        (trajectory(end_timestamp="2025-12-08T12:59:59Z"), Reason.TIME_ORDER),
        (trajectory(turns=[]), Reason.SCHEMA),
        (trajectory(extra=1), Reason.SCHEMA),
    ],
)
def test_what_is_out_of_order_is_refused_by_name(document, reason):
    assert refused(document) is reason


@given(st.integers(0, 2), st.sampled_from("[{"), st.integers(1))
def test_what_was_cut_off_is_malformed_whatever_it_began_as(more, opens, at):
    """Of a message that is not whole nobody knows the shape: neither a list's nor an object's."""
    whole = (
        raw([trajectory(session_id="Grüße")] * (more + 1)) if opens == "[" else raw(trajectory())
    )
    with pytest.raises(Rejected) as caught:
        admit(whole[: 1 + at % (len(whole) - 1)], REDACTOR, LIMITS)
    assert caught.value.reason is Reason.MALFORMED


def test_size_and_depth_have_limits():
    assert refused(trajectory(), max_bytes=512) is Reason.TOO_LARGE
    nested = {}
    for _ in range(70):
        nested = {"in": nested}
    assert refused(trajectory(metadata={"deep": nested})) is Reason.TOO_DEEP
    assert taken(trajectory(metadata={"deep": nested}), max_depth=100)


def test_ids_that_hold_something_private_become_pseudonyms():
    document = trajectory(agent_id="bob@example.org", metadata={"user_id": "eve@example.org"})
    row = taken(document).admitted
    assert row.agent_id == pseudonym_for("agent", "bob@example.org")
    assert row.user_id == pseudonym_for("user", "eve@example.org")
    assert b"example.org" not in row.body


def test_episodes_whose_ids_hold_something_private_stay_two_and_are_found_by_their_feedback():
    names = {}
    for address in ("bob@example.org", "eve@example.org"):
        row = taken(trajectory(metadata={"episode_id": address})).admitted
        said = EXAMPLES[Feedback] | {"episode_id": address}
        word, _ = admit_feedback(
            raw({k: v for k, v in said.items() if k != "trajectory_id"}), REDACTOR, LIMITS
        )
        assert b"example.org" not in row.body + word.body
        assert json.loads(row.body)["metadata"]["episode_id"] == word.episode_id
        names[address] = word.episode_id
    assert len(set(names.values())) == 2


def test_token_ids_are_kept_up_to_the_first_turn_that_redaction_changed():
    tokens = [{"turn_id": n, "ids": [n, n], "logprobs": [-0.1, -0.2]} for n in (1, 2, 3)]
    document = with_turns({"turn_id": 1}, {"turn_id": 2}, {"turn_id": 3})
    document["metadata"]["tokens"] = tokens
    assert json.loads(taken(document).admitted.body)["metadata"]["tokens"] == tokens
    document["turns"][1]["result"] = {"success": True, "output": "mail bob@example.org"}
    assert json.loads(taken(document).admitted.body)["metadata"]["tokens"] == tokens[:1]
    document["task_context"]["instructions"] = "mail bob@example.org"
    assert "tokens" not in json.loads(taken(document).admitted.body)["metadata"]


def test_text_where_tokens_should_be_is_redacted_like_any_text():
    document = trajectory(metadata={"tokens": [{"turn_id": 1, "ids": ["bob@example.org"]}]})
    assert b"bob@" not in taken(document).admitted.body


def test_what_the_trajectory_does_not_say_is_found_out():
    document = trajectory(subordinate_profile=None)
    document["task_context"] = {"task_id": "t", "instructions": "Debug the traceback of the crash."}
    row = taken(document).admitted
    assert (row.domain, row.agent_type) == ("debugging", "main")
    assert (row.window_id, row.scenario_id, row.continuous) == ("2025-12-08T13:00", "t", False)
    assert 0 < row.complexity < 1


def test_what_it_says_is_kept():
    said = {
        "window_id": "2025-12-08T10:00",
        "scenario_id": "s-1",
        "episode_id": "e-1",
        "infra_error": True,
    }
    row = taken(trajectory(metadata=said)).admitted
    assert (row.window_id, row.scenario_id, row.episode_id) == ("2025-12-08T10:00", "s-1", "e-1")
    assert row.infra_error
    assert (row.domain, row.complexity) == ("coding", 0.3)


def test_a_recorder_that_knows_no_task_gets_a_hash_of_the_redacted_request():
    """The same encode_frame of two users is one task, whatever private things they put into it."""

    def asked(text):
        document = trajectory()
        document["task_context"] = {
            "task_id": document["trajectory_id"],
            "instructions": f"Write to {text}.",
        }
        document["turns"][0]["observation"]["content"] = f"Write to {text}."
        return taken(document).admitted.task_id

    assert asked("ann@example.com") == asked("bob@example.org") != asked("everybody")
    assert asked("everybody").startswith("request-")


@pytest.mark.parametrize(
    ("metadata", "continuous"),
    [
        ({}, False),
        ({"window_id": "2025-12-08T10:00"}, True),
        ({"scenario_id": "s"}, True),
        ({"scenario_id": "2025-12-08T10:00", "window_id": "2025-12-08T10:00"}, True),
        ({"scenario_id": "t", "window_id": "2025-12-08T10:00"}, False),
        ({"scenario_id": 7}, False),
    ],
)
def test_a_continuous_world_is_one_whose_window_or_scenario_is_named(metadata, continuous):
    document = trajectory(metadata=metadata)
    document["task_context"]["task_id"] = "t"
    assert taken(document).admitted.continuous is continuous


def test_attempts_that_did_the_same_are_seen_to_be_alike():
    one, same, other = trajectory(), trajectory(), trajectory()
    other["turns"][0]["action"] = {"type": "response", "raw_response": "Something else."}
    assert taken(one).admitted.answers == taken(same).admitted.answers
    assert taken(one).admitted.answers != taken(other).admitted.answers


@pytest.mark.parametrize(
    ("instructions", "domain"),
    [
        ("Implement a parser in Rust", "coding"),
        ("Find the root cause of the crash", "debugging"),
        ("Plot the CSV with pandas", "data_analysis"),
        ("Survey the literature and cite papers", "research"),
        ("Draft a letter", "writing"),
        ("Hello", "general"),
    ],
)
def test_the_domain_follows_the_words_of_the_task(instructions, domain):
    document = trajectory(task_context={"instructions": instructions})
    document["turns"][0]["action"].pop("tool_name")
    assert domain_of(decode_trajectory(raw(document))) == domain


def test_more_turns_tools_and_failures_are_more_complex():
    easy = decode_trajectory(raw(trajectory()))
    turns = [
        {
            "turn_id": n,
            "action": {"type": "tool_call", "tool_name": f"t{n}"},
            "result": {"success": False},
        }
        for n in range(1, 21)
    ]
    hard = decode_trajectory(raw(with_turns(*turns)))
    assert complexity_of(easy) < complexity_of(hard) <= 1


def test_when_the_redactor_fails_nothing_is_kept():
    class Failing(Redactor):
        def tree(self, *_):
            raise RedactionFailed("no")

    refused = evaluate(MessageKind.TRAJECTORY, raw(trajectory()), Failing(), LIMITS)
    assert refused.reason is Reason.REDACTION_FAILED
    assert refused.payload is None


def test_feedback_is_redacted_but_stays_addressed():
    said = EXAMPLES[Feedback] | {"comment": "mail bob@example.org", "user_id": "bob@example.org"}
    admitted, redacted = admit_feedback(raw(said), REDACTOR, LIMITS)
    assert redacted
    assert b"bob@" not in admitted.body
    assert admitted.trajectory_id == said["trajectory_id"]
    assert admitted.user_id == pseudonym_for("user", "bob@example.org")


def test_a_feedback_id_that_holds_something_private_becomes_a_pseudonym():
    said = EXAMPLES[Feedback] | {"feedback_id": "bob@example.org"}
    first, redacted = admit_feedback(raw(said), REDACTOR, LIMITS)
    again, _ = admit_feedback(raw(said), REDACTOR, LIMITS)
    assert redacted
    assert first.feedback_id == pseudonym_for("feedback", "bob@example.org")
    assert (first, b"bob@" in first.body) == (again, False)
    plain, redacted = admit_feedback(raw(EXAMPLES[Feedback]), REDACTOR, LIMITS)
    assert (plain.feedback_id, redacted) == (EXAMPLES[Feedback]["feedback_id"], 0)


@pytest.mark.parametrize(
    "junk",
    [
        b"{bad bob@example.org",
        b"\xff\xfe bob@example.org",
        b'{"a": "bob@example.org"}',
        b"[1" * 3000,
    ],
)
def test_a_dead_letters_payload_is_redacted_whatever_it_is(junk):
    payload = payload_of(junk, REDACTOR)
    assert payload
    assert "bob@" not in payload


@settings(max_examples=200)
@given(st.binary(max_size=3000))
def test_any_bytes_can_be_buried(junk):
    payload = payload_of(junk, REDACTOR)
    assert payload is not None
    assert len(payload.encode()) <= PAYLOAD_LIMIT


def test_a_long_payload_is_cut_after_it_was_redacted():
    secret = "bob@example.org "
    junk = ("x" * 100 + secret).encode() * 20_000
    payload = payload_of(junk, REDACTOR)
    assert len(payload.encode()) <= PAYLOAD_LIMIT
    assert "bob@" not in payload


@pytest.mark.parametrize(
    ("junk", "user"),
    [
        (b'{"metadata": {"user_id": "u1"}, oops', "u1"),
        (b'{"userId":"a\\"b\\u00e9"}', 'a"bé'),
        (b'{"user_id": 7}', None),
        (b"nothing", None),
    ],
)
def test_a_refused_message_is_known_by_its_user(junk, user):
    assert evaluate(MessageKind.TRAJECTORY, junk, REDACTOR, LIMITS).user_id == user


def test_a_refused_messages_user_is_a_pseudonym_where_it_must_be():
    refused = evaluate(MessageKind.TRAJECTORY, b'{"user_id": "bob@example.org"', REDACTOR, LIMITS)
    assert refused.user_id == pseudonym_for("user", "bob@example.org")
