"""Random numbers for weights, load balancing and ids of traces: fast and evenly distributed, not secret."""
