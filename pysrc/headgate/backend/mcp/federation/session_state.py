"""The state that a client sets at a server for the whole session: log level and resource subscriptions.

It is sent again to a server that was restarted or has lost its session, because the client does not notice that.
"""

from __future__ import annotations

import json
from typing import Final

from headgate.dialect.mcp.jsonrpc import RpcMessage, parse

SET_LEVEL: Final = "logging/setLevel"
SUBSCRIBE: Final = "resources/subscribe"
UNSUBSCRIBE: Final = "resources/unsubscribe"
METHODS: Final = frozenset((SET_LEVEL, SUBSCRIBE, UNSUBSCRIBE))
# Maximum number of subscriptions per session and server; the oldest one is forgotten.
MOST_URIS: Final = 1000


class SessionStateReplay:
    """The state of one session at one server."""

    def __init__(self) -> None:
        self._level: bytes | None = None
        self._subscribed: dict[str, bytes] = {}

    def note(self, message: RpcMessage, answer: RpcMessage) -> None:
        """Store a request that the server accepted if it changes the state."""
        method, uri = message.method, message.uri
        if method not in METHODS or answer.is_error:
            return
        if method == SET_LEVEL:
            self._level = message.text
        elif uri is not None and method == UNSUBSCRIBE:
            self._subscribed.pop(uri, None)
        elif uri is not None:
            self._subscribed[uri] = message.text
            while len(self._subscribed) > MOST_URIS:
                del self._subscribed[next(iter(self._subscribed))]

    def again(self) -> list[RpcMessage]:
        """Return the requests that restore the state, with ids of the gateway."""
        texts = [*([] if self._level is None else [self._level]), *self._subscribed.values()]
        return [parse(parse(text).with_id(json.dumps(f"gw_again_{n}").encode())) for n, text in enumerate(texts)]
