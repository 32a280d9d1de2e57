"""Ids that only a gateway gives: which are they, and can one be mistaken for another?"""

from uuid import UUID, uuid1, uuid3, uuid4, uuid5

from hypothesis import given
from hypothesis import strategies as some

from upswing.contracts.ids import gateway_id, is_gateway_id

SPELLINGS = (
    str,
    lambda each: each.hex,
    lambda each: str(each).upper(),
    lambda each: each.urn,
    lambda each: f"{{{each}}}",
)


@given(some.uuids(), some.sampled_from(SPELLINGS))
def test_what_a_gateway_gives_is_known_in_every_spelling(random, spelled):
    made = gateway_id(random)
    assert made.version == 8
    assert UUID(str(made)) == made
    assert is_gateway_id(spelled(made))


@given(some.uuids(version=4), some.uuids(version=4))
def test_two_ids_stay_two(one, other):
    free = (0xFFFFFFFFFFFF << 80) | 0xFFFFFFFFFFFF
    assert (gateway_id(one) == gateway_id(other)) == (one.int & free == other.int & free)


@given(some.text() | some.uuids(version=4).map(str))
def test_no_id_of_another_form_is_taken_for_one(text):
    assert not is_gateway_id(text)


def test_no_common_version_of_a_uuid_is_taken_for_one():
    for made in (uuid1(), uuid3(uuid4(), "a"), uuid4(), uuid5(uuid4(), "a"), UUID(int=0)):
        assert not is_gateway_id(str(made))
