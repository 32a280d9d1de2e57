"""The whole loop turns, and a person sees it work."""
