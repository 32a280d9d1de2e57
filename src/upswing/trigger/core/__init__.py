"""Is it time to train, and on what? Values in, values out."""
