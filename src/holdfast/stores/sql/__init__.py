"""Everything durable as SQL: one body of statements and rules for every database that runs them."""
