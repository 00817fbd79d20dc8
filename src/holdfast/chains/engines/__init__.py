"""What sees to it that runs are driven: in this process alone, or by DBOS, which outlives it."""
