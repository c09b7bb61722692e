"""What the operator asks: configuration dump, log level, memory, metrics, readiness, shutdown."""
