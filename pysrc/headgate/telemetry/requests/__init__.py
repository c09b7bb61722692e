"""The request log: one record per finished request in a SQLite database."""
