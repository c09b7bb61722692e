"""What TCP costs a worker."""
