"""Failures of access to a cluster."""


class ClusterError(Exception):
    """The cluster cannot be reached, or refuses; the message is for the operator and holds no credential."""
