"""One question per file, all of one shape; `lifecycle.GATES` gives their order."""
