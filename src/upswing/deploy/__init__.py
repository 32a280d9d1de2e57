"""How boldly does a model go out, and what should its canary do next?"""
