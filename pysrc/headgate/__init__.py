"""Headgate, a gateway for agents: what runs once per configuration, per session or per operator."""

__version__ = "0.1.0"
