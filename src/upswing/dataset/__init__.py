"""Which trajectories, in what groups?"""
