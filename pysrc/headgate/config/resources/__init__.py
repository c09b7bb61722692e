"""Configuration that is stored in a database beside the file (`config.storage.mode: hybrid`)."""
