"""The ports of the durable memory, in plain dicts: for tests, and the model the others are tested against."""
