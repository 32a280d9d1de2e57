"""The web page: a process of its own that knows of the loop only what its HTTP API answers to the user's own key."""
