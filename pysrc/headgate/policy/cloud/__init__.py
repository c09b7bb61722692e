"""Cloud credentials: how they are found, refreshed and added to requests."""
