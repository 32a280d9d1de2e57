"""What is a trajectory worth? Components, baselines, windows, the judge's prompt and verdict: values in, values out."""
