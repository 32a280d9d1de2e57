"""Whatever is handed to a helper function by hand, the answer is a sentence of ours."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upswing import rl_trainer
from upswing.errors import UpswingError

JUNK = st.one_of(
    st.none(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.binary(max_size=5),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=5), st.integers(), max_size=2),
    st.just(object()),
    st.just({"a": object()}),
)
CALLS = [
    lambda junk: rl_trainer.publish_nats(junk, {}),
    lambda junk: rl_trainer.publish_nats("agent.rl.trajectory.v1", junk),
    rl_trainer.subscribe_nats,
    rl_trainer.validate_trajectory,
    lambda junk: rl_trainer.validate_trajectory({}, junk),
    rl_trainer.redact_sensitive_info,
    lambda junk: rl_trainer.redact_sensitive_info({}, junk),
    rl_trainer.compute_reward,
    lambda junk: rl_trainer.compute_reward({}, junk),
    lambda junk: rl_trainer.compute_reward({}, (), junk),
    lambda junk: rl_trainer.compute_reward({}, feedback=junk),
    lambda junk: rl_trainer.run_benchmarks(junk, timeout=-1),
    lambda junk: rl_trainer.run_benchmarks("m", junk, timeout=-1),
    lambda junk: rl_trainer.deploy_to_tensorzero(junk, "s3://b/c", "all at once"),
    lambda junk: rl_trainer.deploy_to_tensorzero("m", junk, "all at once"),
]


@pytest.mark.parametrize("call", CALLS)
@given(junk=JUNK)
def test_nothing_but_a_sentence_comes_of_a_wrong_argument(call, junk):
    with pytest.raises(UpswingError) as refused:
        call(junk)
    assert str(refused.value).rstrip().endswith(".")


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: rl_trainer.redact_sensitive_info({}, "email"), "patterns"),
        (lambda: rl_trainer.run_benchmarks("m", "code_gen"), "tasks"),
        (lambda: rl_trainer.compute_reward({}, {}), "historical_data"),
        (lambda: rl_trainer.compute_reward({}, weights={"task_completion": "much"}), "weights"),
        (lambda: rl_trainer.download_checkpoint(None), "s3_path"),
        (lambda: rl_trainer.subscribe_nats("agent.rl.trajectory.v1", ""), "queue_group"),
        (lambda: rl_trainer.run_benchmarks("m", timeout="1h"), "timeout"),
    ],
)
def test_the_argument_is_named(call, name):
    with pytest.raises(UpswingError, match=f"^`{name}"):
        call()
