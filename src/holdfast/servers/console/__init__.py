"""The console: pages for the people who answer for what agents do. It has no rights of its own."""
