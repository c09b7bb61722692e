"""What the gateway reads of A2A messages.

Sources: https://a2a-protocol.org/v0.3.0/specification/, https://a2a-protocol.org/v1.0.0/specification/.
"""

from headgate_engine.peek.json import ObjectPeek

CARD_FIELDS: dict[int, tuple[str, ...]]
INTERFACE_FIELDS: dict[int, tuple[str, ...]]
CALL_FIELDS: dict[int, tuple[str, ...]]
OUTCOME_FIELDS: dict[int, tuple[str, ...]]
BARE_OUTCOME_FIELDS: dict[int, tuple[str, ...]]
MAX_TEXT: int
MAX_CODE: int

class CardPeek(ObjectPeek):
    """The members of an agent card that contain URLs or signatures; C face only."""

class InterfacePeek(ObjectPeek):
    """The URL of an interface of an agent card; C face only."""

class CallPeek(ObjectPeek):
    """The method of a JSON-RPC call."""

    def method(self, text: bytes, cut: bool = False) -> str | None:
        """Return the method of a call, None without one. cut: the text is the beginning of a longer one."""

class OutcomePeek(ObjectPeek):
    """What the log says of an answer."""

    def outcome(self, text: bytes, bare: bool = False, failed: bool = False) -> list[tuple[str, str | int]]:
        """Return (key, value) of what the log says of an answer. Raises PeekError if the text is not JSON.

        bare: the result is the whole text (HTTP+JSON), not its member `result` (JSON-RPC). failed: the status says that
        it is an error.
        """
