"""However many users a key invents and however busy it is, it counts for no more than one user may."""

import random
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from upswing.deploy.core.error_rate import RequestCounts
from upswing.deploy.core.evidence import begin_evidence, decode, encode
from upswing.deploy.core.health import HealthStatus, judge_health
from upswing.deploy.core.key_weights import VoiceCounts
from upswing.deploy.core.limits import RolloutLimits
from upswing.deploy.core.record import RolloutRecord, add_complaints, add_rewards, add_watch_rewards
from upswing.deploy.core.rows import ComplaintBatch, ObservedComplaint, ObservedReward, RewardBatch
from upswing.deploy.core.watch import begin_watch
from upswing.principals import CAP, Voice
from upswing.reward.core.influence import fair_mean

LIMITS, ROLLOUT = RolloutLimits(), SimpleNamespace(model_id="m", rollout_id="r")
NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
KEYS, USERS = st.integers(1, 4), st.integers(1, 500)
SHARES = st.floats(0.05, 0.99)


@settings(deadline=None, max_examples=60)
@given(honest=st.integers(2, 60), keys=KEYS, invented=USERS, rows=st.integers(1, 2000))
def test_a_mean_moves_by_no_more_than_one_users_share_for_each_key(honest, keys, invented, rows):
    crowd = [(f"user-{n}", 0.8) for n in range(honest)]
    lies = [
        (Voice(f"u{n % invented}", f"key-{key}"), 0.0) for key in range(keys) for n in range(rows)
    ]
    moved = 0.8 - fair_mean(crowd + lies)
    assert moved <= 0.8 * keys * CAP / (honest + keys) + 1e-9
    as_one = [(f"key-{key}", 0.0) for key in range(keys) for _ in range(rows)]
    assert fair_mean(crowd + lies) == pytest.approx(fair_mean(crowd + as_one))


def test_today_five_hundred_invented_users_of_one_key_do_not_own_a_mean():
    crowd = [(f"user-{n}", 0.8) for n in range(100)]
    lies = [(Voice(f"u{n}", "key"), 0.0) for n in range(500)]
    assert 0.8 - fair_mean(crowd + lies) < 0.8 * CAP / 101 + 1e-9
    unnamed = [(voice.user, value) for voice, value in lies]
    assert 0.8 - fair_mean(crowd + unnamed) > 0.47, "what it would be by users alone"


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.floats(0, 1)), min_size=1))
def test_where_one_key_speaks_its_users_count_by_themselves(values):
    told = [(Voice(user, "only"), value) for user, value in values]
    assert fair_mean(told) == pytest.approx(fair_mean(values))


def most(voices):
    """Its share, and the one that it was not ahead with; chance takes one of two three further."""
    lead = 4 if voices.voices == 2 else 1
    return min(0.5, CAP / voices.voices) * voices.counted + lead


ORDERS = {
    "in turn": lambda chance, keys, n: n % keys,
    "by chance": lambda chance, keys, n: chance.randrange(keys),
    "in bursts": lambda chance, keys, n: n // 7 % keys,
}


@settings(deadline=None, max_examples=60)
@given(keys=st.integers(2, 30), order=st.sampled_from(sorted(ORDERS)), seed=st.integers(0, 99))
def test_keys_that_speak_equally_often_do_not_wait_for_each_other(keys, order, seed):
    chance, voices = random.Random(seed), VoiceCounts()
    for n in range(3000):
        key = f"k{ORDERS[order](chance, keys, n)}"
        voices.count_if_fair(key, key, several=True)
    assert voices.counted >= 0.88 * 3000


@settings(deadline=None, max_examples=40)
@given(keys=st.integers(2, 30), share=st.floats(0.5, 0.95), seed=st.integers(0, 99))
def test_a_busy_key_among_others_stays_at_its_share(keys, share, seed):
    chance, voices = random.Random(seed), VoiceCounts()
    for n in range(3000):
        key = "busy" if chance.random() < share else f"k{n % (keys - 1)}"
        if voices.count_if_fair(key, key, several=True) and voices.keys[key] > 1:
            assert voices.keys[key] <= most(voices)
    assert voices.keys["busy"] <= 0.6 * voices.counted


@settings(deadline=None, max_examples=40)
@given(users=st.integers(1, 80), keys=KEYS, invented=USERS, share=SHARES, seed=st.integers(0, 99))
def test_no_key_is_counted_more_often_than_one_user_may_be(users, keys, invented, share, seed):
    chance, voices = random.Random(seed), VoiceCounts()
    for _ in range(1500):
        key = f"key-{chance.randrange(keys)}" if chance.random() < share else ""
        user = f"u{chance.randrange(invented if key else users)}"
        before = voices.keys.get(key, 0)
        voices.count_if_fair(key, user, several=True)
        if voices.keys.get(key, 0) > max(1, before):
            assert voices.keys[key] <= most(voices)
    assert voices.counted + voices.left_out == 1500
    assert len(voices.users) <= users


def reward(seq, value, candidate, key="", user="u", **told):
    return ObservedReward(
        seq, "m" if candidate else "tiny", "r", value, "0.5", key=key, user=user, **told
    )


def canary(chance, *, episodes, share, invented, key, users=50):
    """A canary as good as its baseline; one key says that it is not."""
    record = RolloutRecord(begin_evidence(LIMITS), sources=["r"])
    record.evidence.errors.add(RequestCounts(1000, 0), RequestCounts(1000, 0))
    told = []
    for seq in range(1, episodes + 1):
        candidate, lies = chance.random() < 0.5, chance.random() < share
        value = float(not candidate) if lies else chance.choice((0.3, 0.5, 0.7))
        user = f"x{chance.randrange(invented)}" if lies else f"u{chance.randrange(users)}"
        told.append(reward(seq, value, candidate, key if lies else "", user))
    add_rewards(record, ROLLOUT, RewardBatch(tuple(told), episodes, several=True))
    return record.evidence


@pytest.mark.parametrize("invented", [1, 20, 500])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_one_key_with_invented_users_rolls_no_canary_back(invented, share):
    told = {"episodes": 1500, "share": share, "invented": invented}
    evidence = canary(random.Random(7), key="liar", **told)
    assert judge_health(evidence, LIMITS).health is not HealthStatus.FAILING
    assert evidence.voices.keys["liar"] <= CAP * evidence.voices.counted / 51 + 1
    believed = canary(random.Random(7), key="", **told)
    assert judge_health(believed, LIMITS).health is HealthStatus.FAILING, (
        "what it would be without the cap"
    )


def test_a_key_alone_is_not_capped_until_others_speak():
    alone, beside = VoiceCounts(), VoiceCounts()
    assert all(alone.count_if_fair("k", f"u{n}") for n in range(100))
    assert [beside.count_if_fair("k", f"u{n}", several=True) for n in range(5)] == [True] + [
        False
    ] * 4
    assert not any(alone.count_if_fair("k", "u", several=True) for _ in range(5))
    assert all(alone.count_if_fair("", f"u{n}") for n in range(3)), (
        "a trusted key's are counted always"
    )


def test_complaints_and_the_watch_are_capped_alike():
    record = RolloutRecord(begin_evidence(LIMITS), begin_watch(LIMITS, 0.8), sources=["r"])
    lies = tuple(ObservedComplaint(n, "m", "r", NOW, "0.5", "liar", f"x{n}") for n in range(1, 101))
    add_complaints(record, ROLLOUT, ComplaintBatch(lies, 100, several=True))
    assert record.evidence.complaints.candidate == 1
    add_complaints(record, ROLLOUT, ComplaintBatch(lies, 100, several=True))
    assert record.evidence.complaints.candidate == 1
    told = tuple(reward(n, 0.0, True, "liar", f"x{n}") for n in range(1, 101))
    add_watch_rewards(record, ROLLOUT, RewardBatch(told, 100, several=True))
    assert record.watch.fall.rewards == 1


def test_what_is_worked_in_twice_changes_nothing_and_the_row_keeps_it():
    record = RolloutRecord(begin_evidence(LIMITS), sources=["r"])
    told = [reward(n, 0.5, n % 2 == 0, "k" if n % 3 else "", f"u{n}") for n in range(1, 50)]
    add_rewards(record, ROLLOUT, RewardBatch(tuple(told), 49, several=True))
    once = encode(record.evidence)
    add_rewards(record, ROLLOUT, RewardBatch(tuple(told), 49, several=True))
    assert encode(record.evidence) == once
    assert encode(decode(once)) == once


def test_a_canary_that_waits_for_other_keys_says_so_and_is_not_rolled_back():
    evidence = canary(random.Random(1), episodes=1000, share=0.99, invented=9, key="busy")
    verdict = judge_health(evidence, LIMITS)
    assert verdict.health is HealthStatus.INCONCLUSIVE
    assert "keys add NAME --trusted" in verdict.sentence
    assert verdict.too_few_users


@pytest.mark.parametrize(("users", "nameless"), [(5, 500), (39, 0), (39, 1), (40, 0), (40, 500)])
def test_users_are_counted_and_not_their_rewards(users, nameless):
    record = RolloutRecord(begin_evidence(LIMITS), sources=["r"])
    record.evidence.errors.add(RequestCounts(1000, 0), RequestCounts(1000, 0))
    mine = [(f"u{n % users}", True) for n in range(3 * users)] + [("a", False)] * nameless
    told = [
        reward(seq, 0.5, seq % 2 == 0, user=user, by_user=by_user)
        for seq, (user, by_user) in enumerate(mine, 1)
    ]
    add_rewards(record, ROLLOUT, RewardBatch(tuple(told), len(told)))
    assert (
        record.evidence.rewards.candidates + record.evidence.rewards.baselines == users + nameless
    )
    few = judge_health(record.evidence, LIMITS).sentence.startswith(
        f"inconclusive: {users} users cannot"
    )
    assert few == (users < LIMITS.min_users)
