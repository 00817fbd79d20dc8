"""The gateways Holdfast is measured beside, each in an environment of its own."""
