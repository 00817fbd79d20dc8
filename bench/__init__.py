"""What does a governed call cost? Run with `make bench`."""
