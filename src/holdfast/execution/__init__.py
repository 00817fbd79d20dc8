"""After the last gate: the only place a tool is invoked. Only `lifecycle` may import it."""
