"""Who calls us? Each module translates one protocol into calls of the gateway, and decides nothing."""
