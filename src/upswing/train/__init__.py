"""From rewards to a better model: jobs, the algorithms, checkpoints, recovery."""
