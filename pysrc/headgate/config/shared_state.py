"""`config.sharedState` to the IR and back."""

from __future__ import annotations

import os
from typing import Any, Final
from urllib.parse import urlsplit

from headgate.config import extras
from headgate.config.check import Record
from headgate.config.context import Context
from headgate.document.fields import show_milliseconds
from headgate.document.secret import REDACTED, Secret
from headgate.errors import Problem
from headgate.ir.shared_state import SharedState, SharedTls

FORM: Final = "not redis://host:port/number (login before the host), rediss:// the same, or unix:///path"
PORT: Final = 6379


def shared_state(context: Context, process: Record) -> SharedState | None:
    """Return where replicas share counters, None if they do not."""
    holder = process.get("sharedState")
    if holder is None:
        return None
    record = holder["redis"]
    missing = extras.missing("redis")
    if missing is not None:
        context.fault(Problem.ENVIRONMENT, holder, "redis", missing)
        return None
    url = record["url"]
    assert isinstance(url, Secret)
    try:
        scheme, place = _place(url.reveal())
    except ValueError:
        context.fault(Problem.VALUE, record, "url", FORM)
        return None
    tls = record.get("tls")
    if tls is not None and scheme != "rediss":
        context.fault(Problem.CONFLICT, record, "tls", "only a URL with rediss:// has TLS")
    if record.get("timeout") == 0:
        context.fault(Problem.VALUE, record, "timeout", "the time must be longer than 0")
    return SharedState(
        url=url,
        place=place,
        mode=record.get("mode", "share"),
        failure=record.get("failureMode", "local"),
        timeout_ms=record.get("timeout", 250),
        local_share=record.get("localShare", 10),
        replicas=record.get("replicas", 1),
        key_prefix=record.get("keyPrefix", "headgate:"),
        max_connections=record.get("maxConnections", 4),
        tls=_tls(context, tls) if scheme == "rediss" else None,
    )


def _place(text: str) -> tuple[str, str]:
    """Return scheme and address of a URL, without what is secret in it; ValueError for another form."""
    parts = urlsplit(text)
    if parts.query or parts.fragment or any(char <= " " for char in text):
        raise ValueError("neither has a meaning")
    if parts.scheme == "unix" and not parts.netloc and parts.path.startswith("/"):
        return "unix", f"unix:{parts.path}"
    if parts.scheme not in ("redis", "rediss") or not parts.hostname or not (parts.path[1:] or "0").isdecimal():
        raise ValueError("not a server's")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return parts.scheme, f"{host}:{parts.port or PORT}"


def _tls(context: Context, record: Record | None) -> SharedTls:
    if record is None:
        return SharedTls()
    files: dict[str, str | None] = {}
    for name in ("root", "cert", "key"):
        text = record.get(name)
        path = None if text is None else context.find_file(text)
        if path is not None and not os.path.isfile(path):
            context.fault(Problem.ENVIRONMENT, record, name, "no such file")
        files[name] = path
    if (files["cert"] is None) != (files["key"] is None):
        context.fault(Problem.CONFLICT, record, "cert", "a certificate and its key belong together")
    return SharedTls(**files, insecure=record.get("insecure", False))


def dump(state: SharedState) -> dict[str, Any]:
    """Return the form of the configuration dump, without what is secret in the URL."""
    found: dict[str, Any] = {
        "url": REDACTED,
        "address": state.place,
        "mode": state.mode,
        "failureMode": state.failure,
        "timeout": show_milliseconds(state.timeout_ms),
        "localShare": state.local_share,
        "replicas": state.replicas,
        "keyPrefix": state.key_prefix,
        "maxConnections": state.max_connections,
    }
    if state.tls is not None:
        named = {"root": state.tls.root, "cert": state.tls.cert, "key": state.tls.key}
        found["tls"] = {name: path for name, path in named.items() if path is not None}
        found["tls"]["insecure"] = state.tls.insecure
    return {"redis": found}
