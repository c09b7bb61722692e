"""What a client told a server that lasts as long as their session: the log level, and the resources it subscribed to.

A server that is started again, or has forgotten its session, is told it anew: nobody else knows that there was another.
"""

from __future__ import annotations

import json
from typing import Final

from headgate.dialect.mcp.jsonrpc import Message, parse

SET_LEVEL: Final = "logging/setLevel"
SUBSCRIBE: Final = "resources/subscribe"
UNSUBSCRIBE: Final = "resources/unsubscribe"
METHODS: Final = frozenset((SET_LEVEL, SUBSCRIBE, UNSUBSCRIBE))
# Subscriptions of one session at one server that are remembered; of more the oldest is not.
MOST_URIS: Final = 1000


class SessionStateReplay:
    """Those of one session at one server."""

    def __init__(self) -> None:
        self._level: bytes | None = None
        self._subscribed: dict[str, bytes] = {}

    def note(self, message: Message, answer: Message) -> None:
        """Remember a request that the server has agreed to, if it lasts."""
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

    def again(self) -> list[Message]:
        """Return the requests that tell it anew, under ids of the gateway's own."""
        texts = [*([] if self._level is None else [self._level]), *self._subscribed.values()]
        return [parse(parse(text).with_id(json.dumps(f"gw_again_{n}").encode())) for n, text in enumerate(texts)]
