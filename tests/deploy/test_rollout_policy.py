"""The operator's knobs, from the file and from the environment."""

import pytest

from upswing.deploy.core.policy import DeployPolicy, deploy_policy_of
from upswing.errors import Misuse

NAMES = (
    "CANARY_INITIAL_TRAFFIC",
    "CANARY_RAMP_HOURS",
    "ROLLBACK_ERROR_THRESHOLD",
    "ROLLBACK_REWARD_THRESHOLD",
)


def test_without_a_word_it_is_the_default():
    assert deploy_policy_of({}) == deploy_policy_of(dict.fromkeys(NAMES, " ")) == DeployPolicy()


def test_the_variables_as_the_guides_write_them():
    policy = deploy_policy_of(dict(zip(NAMES, ("0.10", "4", "0.05", "-0.05"), strict=True)))
    assert policy == DeployPolicy()


def test_the_environment_wins_over_the_file():
    file = {"ramp_hours": 8, "boldness": {"initial": 0.2}, "limits": {"reward": 0.1}}
    assert deploy_policy_of({}, file).ramp_hours == 8
    found = deploy_policy_of(dict(zip(NAMES, ("25%", "2", "8%", "0.2"), strict=True)), file)
    assert (found.boldness.initial, found.ramp_hours) == (0.25, 2)
    assert (found.limits.errors, found.limits.reward) == (0.08, 0.2)


@pytest.mark.parametrize(
    ("text", "share"), [("0.10", 0.10), ("0.1", 0.10), ("10%", 0.10), ("0.05", 0.05)]
)
def test_the_initial_traffic_is_a_share(text, share):
    assert deploy_policy_of({"CANARY_INITIAL_TRAFFIC": text}).boldness.initial == share


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("CANARY_INITIAL_TRAFFIC", "10", "10 % is 0.1, or `10%`"),
        ("CANARY_INITIAL_TRAFFIC", "1", "1 % is 0.01, or `1%`"),
        ("CANARY_INITIAL_TRAFFIC", "50", "50 % is 0.5, or `50%`"),
        ("ROLLBACK_ERROR_THRESHOLD", "5", "5 % is 0.05, or `5%`"),
    ],
)
def test_a_percentage_without_its_sign_is_refused_with_what_to_write(name, text, said):
    with pytest.raises(Misuse) as refused:
        deploy_policy_of({name: text})
    assert f"{name} is '{text}', and it is a share: {said}." in str(refused.value)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("bad", ["nan", "inf", "x", "0", "1e9", "--1", "10 %%"])
def test_a_value_that_makes_no_sense_is_refused_by_name(name, bad):
    with pytest.raises(Misuse, match=name):
        deploy_policy_of({name: bad})


@pytest.mark.parametrize(
    "file",
    [
        {"ramp": 3},
        {"ramp_hours": 0},
        {"limits": {"errors": 0.9}},
        {"newcomers": "fight"},
        {"boldness": {"initial": 1}},
        {"holdback": 0.6},
        {"holdback": -0.1},
        {"watch_days": 0},
    ],
)
def test_a_file_that_makes_no_sense_is_refused(file):
    with pytest.raises(Misuse, match=r"\[deploy\]"):
        deploy_policy_of({}, file)
