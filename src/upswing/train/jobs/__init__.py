"""How does a request to train become a job, and a job a model?"""
