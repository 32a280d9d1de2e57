"""Is this answer right? Rules, one module for each kind of answer."""
