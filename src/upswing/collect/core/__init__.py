"""Does this message enter the loop, and in which form? Values in, values out."""
