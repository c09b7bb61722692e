"""The places in the configuration where listeners serve the admin page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headgate.config.ui_route import is_page
from headgate.ir.backend import UiBackend
from headgate.ir.bind import Bind
from headgate.ir.gateway import Gateway
from headgate.ir.listener import Listener
from headgate.ir.route import Route

DEFAULT_PORTS: Final = {False: 80, True: 443}


def mounts(gateway: Gateway) -> Iterator[tuple[Bind, Listener, Route, UiBackend]]:
    """Yield every place where a listener serves the page or its API."""
    for bind in gateway.binds:
        for listener in bind.listeners:
            for route in listener.routes:
                for choice in route.backends:
                    if isinstance(choice.backend, UiBackend):
                        yield bind, listener, route, choice.backend


def mount_url(gateway: Gateway) -> str | None:
    """Return the URL of the page behind a listener, None if the section `ui` is at none."""
    for bind, listener, _, backend in mounts(gateway):
        if not is_page(backend):
            continue
        name = listener.hostname or "localhost"
        host = f"any{name[1:]}" if name.startswith("*.") else name
        port = "" if bind.port == DEFAULT_PORTS[bind.tls] else f":{bind.port}"
        return f"{'https' if bind.tls else 'http'}://{host}{port}/ui"
    return None
