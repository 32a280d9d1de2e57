"""How the learning tests train `tiny`: small, quick, a few rounds."""

ROUNDS = 4
_COMMON = {
    "learning_rate": 1e-3,
    "batch_size": 64,
    "epochs": 6,
    "save_interval": 1000,
    "holdout": 0.1,
}
RECIPES = {
    "grpo": _COMMON,
    "rloo": _COMMON,
    "reinforce": _COMMON,
    "ppo": _COMMON,
    "dpo": {**_COMMON, "epochs": 4},
}
