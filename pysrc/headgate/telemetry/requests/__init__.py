"""The request log: a record of each finished request in a SQLite database."""
