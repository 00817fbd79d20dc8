"""AgentDojo's user tasks behind the gateway, replayed without a model."""
