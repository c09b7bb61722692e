"""The operator's servers: configuration dump, log levels, memory, metrics, readiness, shutdown, and the admin page."""
