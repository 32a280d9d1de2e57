"""What a person confirmed for an assistant: the audit names both keys, and nobody who did not ask."""

import pytest

pytestmark = pytest.mark.live


async def test_the_audit_names_the_assistant_that_asked(client):
    _, made = await client("POST", "/v1/keys", {"name": "helper", "scope": "assistant"})
    shown = (f"X-Assistant-Key: {made['key']}",)
    status, added = await client(
        "POST", "/v1/keys", {"name": "x", "scope": "reader"}, headers=shown
    )
    assert status == 201
    _, audit = await client("GET", "/v1/audit?limit=1")
    assert audit["entries"][0]["about"] == added["key_id"]
    assert audit["entries"][0]["who"] == f"key operator, asked by key {made['key_id']}"


async def test_a_key_that_does_not_work_asks_for_nothing(client):
    _, made = await client("POST", "/v1/keys", {"name": "helper", "scope": "assistant"})
    await client("DELETE", f"/v1/keys/{made['key_id']}")
    for key in (made["key"], "up_nobody", made["key_id"]):
        status, _ = await client(
            "POST",
            "/v1/keys",
            {"name": "y", "scope": "reader"},
            headers=(f"X-Assistant-Key: {key}",),
        )
        assert status == 401
    _, listed = await client("GET", "/v1/keys")
    assert "y" not in {key["name"] for key in listed["keys"]}
