"""Where on the network may the gateway connect to? Words for it, without a network."""
