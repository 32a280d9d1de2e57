"""How boldly is a model rolled out, and what should its canary do next?"""
