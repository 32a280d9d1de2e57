"""What should happen to a rollout, and why? States, evidence, tests and verdicts: values in, values out."""
