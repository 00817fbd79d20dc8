"""What happens to a question while it waits, when it is answered, and after it was approved."""
