"""The vocabulary: frozen data without I/O. Imports nothing else of Holdfast."""
