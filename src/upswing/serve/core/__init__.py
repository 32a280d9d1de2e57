"""What is asked of a model, which token is next, and how does the answer read? Values in, values out."""
