"""Typed errors of the codecs."""

from __future__ import annotations


class ProtocolError(Exception):
    """A rule of the protocol was broken. `status` is the answer that a server owes for it (400..599)."""

    def __init__(self, reason: str, status: int = 400) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status


class RemoteProtocolError(ProtocolError):
    """The peer broke it."""


class LocalProtocolError(ProtocolError):
    """We tried to: a fault in this program."""

    def __init__(self, reason: str, status: int = 500) -> None:
        super().__init__(reason, status)


class NameResolutionError(OSError):
    """A host name has no address, or nobody could be asked for one. `args`: the reason in words."""


class DestinationRefusedError(OSError):
    """No connection is made to the address: the rules of the backend forbid it. `args`: the reason in words."""


class TlsError(ValueError):
    """Settings of TLS that the loaded library refuses: a certificate, a key, a name of a suite or a group."""
