"""Questions to people: who may answer, and what they are shown."""
