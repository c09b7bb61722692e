from headgate_engine.link.backend import RoutedRequest
from headgate_engine.link.timers import Timer

class Deadlines(Timer):
    """C face only: when a request, an attempt or the pause before the next one is over."""

class RequestCore(RoutedRequest):
    """C face only: a request as its parts see it."""
