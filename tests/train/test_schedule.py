"""Which trajectories are in which step?"""

from hypothesis import given
from hypothesis import strategies as st

from upswing.train.core.recipe import Recipe
from upswing.train.learn.schedule import learning_rate, plan_steps

clusters = st.lists(st.integers(1, 9), min_size=1, max_size=12).map(
    lambda sizes: [tuple(range(sum(sizes[:i]), sum(sizes[: i + 1]))) for i in range(len(sizes))]
)


@given(clusters, st.integers(1, 16), st.integers(1, 3), st.integers(0, 99))
def test_every_epoch_takes_every_trajectory_once(groups, size, epochs, seed):
    steps = plan_steps(groups, Recipe(batch_size=size, epochs=epochs, seed=seed))
    everybody = sorted(member for group in groups for member in group)
    for epoch in range(epochs):
        taken = [m for step in steps if step.epoch == epoch for m in step.members]
        assert sorted(taken) == everybody


@given(clusters, st.integers(1, 16), st.integers(0, 99))
def test_clusters_stay_whole_and_the_order_is_the_seeds(groups, size, seed):
    recipe = Recipe(batch_size=size, seed=seed)
    steps = plan_steps(groups, recipe)
    assert all(cluster in groups for step in steps for cluster in step.clusters)
    assert steps == plan_steps(groups, recipe)
    full = [step for step in steps if len(step.members) >= size]
    assert len(steps) - len(full) <= recipe.epochs


@given(clusters, st.integers(1, 5), st.integers(1, 4))
def test_iterations_take_their_share_round_and_round(groups, share, iterations):
    recipe = Recipe(windows_per_iteration=share, iterations=iterations, epochs=1)
    steps = plan_steps(groups, recipe)
    for iteration in range(iterations):
        chosen = [c for step in steps if step.iteration == iteration for c in step.clusters]
        assert len(chosen) == min(share, len(groups)) == len(set(chosen))
    taken = [c for step in steps for c in step.clusters]
    counts = [taken.count(group) for group in groups]
    assert max(counts) - min(counts) <= 1


@given(st.integers(1, 50), st.floats(0, 1), st.sampled_from(["cosine", "constant"]))
def test_the_learning_rate_stays_between_nothing_and_the_recipes(total, warmup, schedule):
    recipe = Recipe(learning_rate=3e-4, warmup=warmup, schedule=schedule)
    rates = [learning_rate(recipe, step, total) for step in range(total)]
    assert all(0 < rate <= 3e-4 * (1 + 1e-9) for rate in rates)
