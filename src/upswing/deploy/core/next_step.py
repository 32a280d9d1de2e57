"""A model has no rollout: why not, and what can an operator do about it?"""

from __future__ import annotations

from upswing.deploy.core.states import ModelState

_OWN_TASKS = (
    "give the validation tasks of your own ([validate.files] or [validate.worlds] in upswing.toml, then a restart) "
    "and have it validated again with `upswing rollouts revalidate {model}`"
)
_OVERRIDE = "a canary without a passed validation is `upswing rollouts override {model} --reason …`"
_STEPS = {
    ModelState.TRAINED: "it waits for its validation",
    ModelState.VALIDATING: "it is being validated; a rollout follows when it passes",
    ModelState.PASSED: "its validation passed, and it was passed over; `upswing traffic {model}=PERCENT` gives it traffic",
    ModelState.FAILED: f"its validation failed; `upswing decisions` says why, and {_OVERRIDE}",
    ModelState.UNDECIDED: f"its validation could not decide: {_OWN_TASKS}; {_OVERRIDE}",
    ModelState.ABORTED: f"it was not better than the model that answers; {_OVERRIDE}",
    ModelState.RETIRED: "it had traffic before; `upswing traffic {model}=PERCENT` gives it traffic again",
    ModelState.ROLLED_BACK: "it was rolled back; `upswing rollouts revalidate {model}` has it validated again",
}


def next_step(model_id: str, state: ModelState) -> str:
    """A sentence; empty for a model that has traffic.

    >>> next_step("hosted", ModelState.VALIDATING)
    'hosted has no rollout: it is being validated; a rollout follows when it passes.'
    >>> next_step("v1", ModelState.DEPLOYED)
    ''
    """
    step = _STEPS.get(state)
    return f"{model_id} has no rollout: {step.format(model=model_id)}." if step else ""
