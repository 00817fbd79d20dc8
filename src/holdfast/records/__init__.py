"""What happened, in a form that can be trusted later? One record is one audit entry."""
