"""How does a policy get better from examples? Tensors and seeds in, tensors out; no I/O."""
