"""What the process says about itself: log lines and metrics."""
