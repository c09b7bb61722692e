"""What services on the way of a request cost: authorization, processors, rate limits."""
