"""How do spans of a traced agent become a trajectory? Functions of values, from an export's bytes on."""
