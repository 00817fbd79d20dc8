"""Several calls declared as one: what a chain says, and whether it can be run."""
