"""How well it went by what metadata says: nobody's word is worth more than what was counted."""

from hypothesis import given
from hypothesis import strategies as st

from upswing.dataset import outcome
from upswing.dataset.outcome import VERIFIERS, trajectory_outcome

counts = st.integers(0, 50)


@given(
    passed=counts,
    failed=counts,
    errors=counts,
    total=st.none() | counts,
    rate=st.none() | st.floats(0, 1),
)
def test_a_failed_test_is_never_forgotten(passed, failed, errors, total, rate):
    told = {"passed": passed, "failed": failed, "errors": errors}
    told |= {} if total is None else {"total": total}
    told |= {} if rate is None else {"pass_rate": rate}
    share = outcome.test_pass_rate(told)
    if share is not None:
        assert 0 <= share <= 1
        assert share < 1 or not failed + errors or passed > (total or passed)


@given(status=st.sampled_from(["completed", "failed"]), passed=counts, failed=st.integers(1, 50))
def test_who_speaks_for_the_tests_says_what_they_say(status, passed, failed):
    results = {"passed": passed, "failed": failed}
    told = trajectory_outcome(
        {"outcome": {"status": status, "source": "tests"}, "test_results": results}
    )
    assert told.verified == outcome.test_pass_rate(results)


@given(source=st.text(max_size=60))
def test_only_a_verifier_verifies(source):
    told = trajectory_outcome({"outcome": {"status": "completed", "source": source}})
    named = source[:40].strip().lower().replace("-", "_").replace(" ", "_")
    assert (told.verified is not None) == (named in VERIFIERS)
