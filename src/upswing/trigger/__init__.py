"""Is it time to train, on what, and why?"""
