"""Where tools really run."""
