"""What can be seen from outside: spans, metrics and logs, none of which shows what may not be shown."""
