"""How good was it, why, and compared with whom?"""
