"""Health, alerts and costs."""
