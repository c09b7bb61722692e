"""Random numbers for weights and load balancing: fast and evenly distributed, not secret."""
