"""The ports of the durable memory, on one PostgreSQL database that many processes and machines share."""
