"""How does an episode become durable? Recorded beside the answer, redacted and published by a child."""
