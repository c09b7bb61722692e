from headgate_engine.link.timers import Timer

class Wire(Timer):
    """C face only: the output half of a transport."""
