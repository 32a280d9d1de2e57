"""With the real redactor: what leaves the process is clean, and people stay distinguishable."""

import json

import pytest
from loop_double import eventually, say

from upswing.sdk.clean import default_redactor

SECRETS = (
    "sk-proj-" + "Ab3dEf6h" * 6,
    "AKIA" + "IOSFODNN7EXAMPLQ",
    "bob.miller@example.org",
)


@pytest.fixture
def real(make):
    return lambda: make(redactor=default_redactor)


def test_no_secret_is_in_the_spool_or_on_the_wire(real, loop, tmp_path):
    recorder = real()
    loop.stop()
    with recorder.trajectory(agent_id="a", task=f"Use {SECRETS[0]}", user_id=SECRETS[2]) as t:
        for secret in SECRETS:
            t.turn(f"it is {secret}", {"tool": "x", "args": {"k": secret}}, {"out": secret})
    tid = recorder.start_trajectory(agent_id="a")
    recorder.record_step(tid, environment_state={"who": SECRETS[2]}, action={"type": "x"})
    recorder.end_trajectory(tid)
    recorder.feedback(t.id, "comment", comment=f"ask {SECRETS[2]}", user_id=SECRETS[2])
    assert not recorder.flush()
    on_disk = b"".join(path.read_bytes() for path in (tmp_path / "spool").iterdir()).decode()
    assert recorder.stats.spooled == 3
    loop.start()
    assert eventually(recorder.flush)
    assert recorder.stats.sent == 3
    for secret in SECRETS:
        assert secret not in on_disk
        assert secret not in json.dumps(loop.requests)


def test_users_stay_apart_and_their_feedback_finds_them(real, loop):
    recorder = real()
    tids = [say(recorder, user_id=user) for user in ("bob@example.org", "eve@example.org", "u-7")]
    recorder.feedback(tids[0], "thumbs_up", user_id="bob@example.org")
    assert recorder.flush(60)
    bob, eve, plain = (message["metadata"]["user_id"] for message in loop.seen[:3])
    assert len({bob, eve, "<email-1>"}) == 3
    assert plain == "u-7"
    assert loop.seen[3]["user_id"] == bob
