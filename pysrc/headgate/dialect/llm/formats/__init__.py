"""One module per format: what a whole reply says, and how to say it."""
