"""Numbered steps that bring a database to the shape this code expects."""
