"""Does this message enter the loop? Decode, validate, redact, enrich; then store, then ack."""
