"""How does what an upstream lists become contracts? Pure functions; only lock and overlay are files."""
