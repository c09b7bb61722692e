"""Readers and writers of complete replies, one module per format."""
