"""How does a request reach a model's server, and its answer the client?"""
