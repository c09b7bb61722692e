"""Credentials of clouds: how they are found, kept fresh, and put into requests."""
