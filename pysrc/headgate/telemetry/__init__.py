"""Log output, metrics and the request log of the process."""
