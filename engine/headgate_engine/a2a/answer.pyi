"""Answers to A2A calls, read for the log (https://a2a-protocol.org/latest/specification/)."""

from headgate_engine.plan.tap import ResponseTap

class AnswerTap(ResponseTap):
    """A ResponseTap that says in the log what comes of a call; C face only."""
