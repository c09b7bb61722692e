class Retries:
    """What the attempts of one request start from, and how many are left."""
