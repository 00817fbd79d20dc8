"""Tests of the engine itself: what the promises of the store stand on."""
