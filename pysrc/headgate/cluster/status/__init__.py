"""Writing the statuses of objects."""
