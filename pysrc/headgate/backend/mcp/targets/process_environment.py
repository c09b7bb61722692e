"""The environment of a server that runs as a child process.

The gateway's own environment has what the configuration expands: keys of providers, passwords, session keys. A server
gets what a program needs to run, and `env` of its target. The official SDKs hand on HOME, LOGNAME, PATH, SHELL, TERM
and USER (`get_default_environment` in https://github.com/modelcontextprotocol/python-sdk); the rest of the names here
tell where programs find their parts, and how they reach the network.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headgate.ir.mcp import StdioTarget

INHERITED: Final = frozenset((
    "HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER",
    "LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP",
    "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "NODE_PATH", "NVM_DIR", "JAVA_HOME",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS",
))  # fmt: skip
INHERITED_PREFIXES: Final = ("LC_", "XDG_")
# In capitals or not. One with a user or a password is left out.
PROXIES: Final = frozenset(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"))


def process_environment(target: StdioTarget, own: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of the target's process. `own` is the gateway's."""
    found = {} if target.clear_env else {name: value for name, value in own.items() if _inherited(name, value)}
    return found | {name: secret.reveal() for name, secret in target.env}


def _inherited(name: str, value: str) -> bool:
    if value.startswith("()"):
        return False  # a function that a shell exported
    if name.upper() in PROXIES:
        return "@" not in value
    return name in INHERITED or name.startswith(INHERITED_PREFIXES)
