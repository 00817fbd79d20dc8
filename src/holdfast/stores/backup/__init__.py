"""How does a store outlive its machine? One portable file, whichever database it came from."""
