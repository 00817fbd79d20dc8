"""Where the gateway's own secrets are kept, and which of them opens which door."""
