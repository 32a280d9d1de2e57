"""The model that this project makes itself: small enough to learn a rule on a laptop in a minute."""
