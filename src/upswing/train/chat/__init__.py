"""How does a base speak? Conversations as its chat template writes them, and which tokens are its own."""
