"""How the learning tests train `tiny`: small steps, a few passes over what was just recorded."""

ROUNDS = 4
_COMMON = {
    "learning_rate": 3e-4,
    "batch_size": 32,
    "epochs": 8,
    "micro_tokens": 8192,
    "save_interval": 1000,
    "holdout": 0.1,
}
RECIPES = {
    "grpo": _COMMON,
    "rloo": _COMMON,
    "reinforce": {**_COMMON, "epochs": 4, "kl_beta": 0.3},
    "ppo": {**_COMMON, "kl_beta": 0.05},
    "dpo": {**_COMMON, "epochs": 2},
}
