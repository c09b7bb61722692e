class HeaderEdits:
    """What a service wants done to fields."""
