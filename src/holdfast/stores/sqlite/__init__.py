"""The ports of the durable memory, on one SQLite file that several processes may share."""
