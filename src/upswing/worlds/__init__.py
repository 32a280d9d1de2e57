"""Small worlds with a rule to learn, and agents that act in them."""
