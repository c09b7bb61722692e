"""What HTTP/2 costs a worker."""
