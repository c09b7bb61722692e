"""From what was read of a cluster to the file's model and to statuses: pure functions without clock or files."""
