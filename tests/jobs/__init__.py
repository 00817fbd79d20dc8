"""Jobs: what is submitted and goes on without its call (EXE-6)."""
