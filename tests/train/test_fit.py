"""Knobs that nobody set get values that fit base and data; those that somebody set stay."""

import math

import msgspec
import pytest

from upswing.contracts import TrainingRequest, from_builtins
from upswing.contracts.examples import EXAMPLES
from upswing.train.core.fit import fit_recipe
from upswing.train.core.recipe import FITTED, Recipe, build_recipe

TINY, SMOLLM2, LARGE = 883_328, 134_515_008, 8_000_000_000


def asked(algorithm="grpo", recipe=None, configured=None, **hyperparameters):
    tree = dict(EXAMPLES[TrainingRequest])
    config = dict(tree["training_config"])
    config |= {"algorithm": algorithm, "hyperparameters": hyperparameters}
    config.pop("checkpointing", None)
    tree |= {"training_config": config, "metadata": {"recipe": recipe or {}}}
    return build_recipe(from_builtins(TrainingRequest, tree), configured or {})


def fit(recipe, parameters=TINY, *, full=True, trajectories=800, groups=100):
    return fit_recipe(
        recipe, parameters=parameters, full=full, trajectories=trajectories, groups=groups
    )


def test_a_request_that_names_nothing_leaves_everything_open_and_nothing_stays_so():
    recipe = asked()
    assert recipe.unset == FITTED
    assert fit(recipe).recipe.unset == ()


def test_what_somebody_named_stays_whoever_it_was():
    recipe = asked(recipe={"epochs": 2}, configured={"clip_low": 0.1}, learning_rate=1e-5)
    found = fit(recipe)
    assert (found.recipe.epochs, found.recipe.clip_low, found.recipe.learning_rate) == (
        2,
        0.1,
        1e-5,
    )
    assert not {"epochs", "clip_low", "learning_rate"} & found.reasons.keys()


def test_every_fitted_knob_has_its_reason():
    found = fit(asked())
    assert set(FITTED) == found.reasons.keys()
    assert all(found.reasons.values())


def test_a_recipe_made_in_code_is_complete_and_stays_as_it_is():
    assert fit(Recipe(learning_rate=3e-3)).recipe == Recipe(learning_rate=3e-3)


def test_the_usual_settings_stay_for_large_models():
    found = fit(asked(), LARGE, full=False, trajectories=2000).recipe
    assert (found.learning_rate, found.batch_size, found.epochs) == (1e-5, 32, 3)


def test_an_adapter_of_a_small_language_model_gets_what_was_measured():
    found = fit(asked(), SMOLLM2, full=False, trajectories=240).recipe
    assert (found.learning_rate, found.batch_size, found.epochs, found.lora.rank) == (
        5e-4,
        24,
        3,
        16,
    )


@pytest.mark.parametrize("parameters", [TINY, SMOLLM2, LARGE])
@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("algorithm", ["grpo", "rloo", "reinforce", "ppo", "dpo"])
def test_ten_times_the_data_takes_about_the_same_number_of_steps(parameters, full, algorithm):
    def steps(count):
        recipe = fit(asked(algorithm), parameters, full=full, trajectories=count).recipe
        return recipe.epochs * math.ceil(count / recipe.batch_size)

    one_pass = math.ceil(10_000 / 24)
    assert steps(10_000) <= max(1.5 * steps(2_000), one_pass)


def test_few_trajectories_are_not_passed_so_often_that_they_are_memorised():
    many, few = (fit(asked(), trajectories=count).recipe for count in (700, 100))
    assert (many.epochs, many.batch_size) == (30, 128)
    assert (few.epochs, few.batch_size) == (5, 64)
    assert few.warmup > many.warmup


def test_a_retry_halves_a_rate_that_is_written_down():
    found = fit(asked()).recipe
    again = msgspec.json.decode(msgspec.json.encode(found), type=Recipe)
    halved = msgspec.structs.replace(again, learning_rate=again.learning_rate / 2)
    assert fit(halved).recipe == halved
