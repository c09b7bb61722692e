def valid_authority(text: bytes) -> tuple[bool, bool]:
    """Return whether this is an authority, and whether it has a port that is not 0."""
