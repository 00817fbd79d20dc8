"""A kit that drives any MCP gateway through faults and counts effects per key in a store of its own.

`adapter` is the page to read for a gateway of your own, `scenarios` says what is done to it, `run` does it.
Nothing is imported here: the upstream is a part of this package too, and gateways start it for every session.
"""
