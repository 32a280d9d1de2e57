"""What a page asks and does, it does for a login: when that is over, so is everything."""

import pytest

from upswing.dashboard.client import LoopClients
from upswing.dashboard.core.sessions import KeyHolder, SessionTable
from upswing.errors import Denied, Transient

ANN = KeyHolder("k1", "Ann", "operator")
NOWHERE = "http://127.0.0.1:1"
"""Nobody answers there: who gets as far as to ask is told so."""
EVERYTHING = {
    "reads": lambda loop: loop.get("/v1/overview", dict),
    "asks who it is": lambda loop: loop.identify(),
    "acts": lambda loop: loop.act("POST", "/v1/keys", dict, {}),
    "gives feedback": lambda loop: loop.give_feedback("t", ANN, "thumbs_up"),
    "pins": lambda loop: loop.pin("t", None),
    "moves a rollout": lambda loop: loop.move_rollout("m", "approve", "why"),
}


def revoke(session):
    session.ended = True


ENDS = {
    "too old": lambda table, session: table.is_open(session, 12 * 3600.0),
    "unused": lambda table, session: table.is_open(session, 2 * 3600.0),
    "logged out": lambda table, session: bool(table.close("t")) and table.is_open(session, 0.0),
    "its key was revoked": lambda table, session: revoke(session) or table.is_open(session, 0.0),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("what", EVERYTHING)
async def test_whatever_a_page_does_ends_with_its_login(what, end):
    table = SessionTable()
    session = table.open("t", "key", ANN, 0.0)
    shared = LoopClients(NOWHERE, clock=lambda: 0.0).of("key")
    with pytest.raises(Transient):
        await EVERYTHING[what](shared.while_open(lambda: table.is_open(session, 1.0)))
    with pytest.raises(Denied, match="log in again"):
        await EVERYTHING[what](shared.while_open(lambda: ENDS[end](table, session)))
