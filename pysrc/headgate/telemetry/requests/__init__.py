"""The request log: one record per finished request in SQLite or PostgreSQL."""
