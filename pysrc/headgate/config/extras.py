"""Libraries that a configuration may need and an installation may lack: extras of the package (pyproject.toml)."""

from __future__ import annotations

import functools
import importlib.util
import os
from typing import Final

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.errors import Problem
from headgate.ir.policy.cloud_auth import AwsAuth, CloudAuth, GcpAuth

# What each extra brings along, by the name under which it is imported.
EXTRAS: Final = {
    "google.auth": "cloud", "botocore": "cloud", "envoy.service.auth": "envoy", "envoy.service.ext_proc": "envoy",
    "envoy.service.ratelimit": "envoy", "pycares": "dns", "asyncpg": "postgres", "redis": "redis",
}  # fmt: skip
# Set in the one-file program, which some extras are left out of (ci/binary).
ONE_FILE: Final = "HEADGATE_PROGRAM"


@functools.cache
def installed(module: str) -> bool:
    """Tell whether a library is installed, without loading it."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # nor the package that it is in
        return False


def missing(module: str) -> str | None:
    """Return how to install a missing library, None if it is installed."""
    return None if installed(module) else lacking(module, EXTRAS[module])


def lacking(module: str, extra: str) -> str:
    """Return how to install a library that is not there, by the extra that brings it."""
    if os.environ.get(ONE_FILE):
        how = f"install the package instead: pip install 'headgate[{extra}]'"
        return f"needs the library {module}, which is not in the one-file program: {how}"
    return f"needs the library {module}, which is not installed: pip install 'headgate[{extra}]'"


def check_cloud(context: Context, record: Record, key: str, auth: object) -> None:
    """Report an error for credentials of a cloud whose library is not installed. Explicit keys need no library."""
    module = _library(context, auth) if isinstance(auth, CloudAuth) else None
    message = None if module is None else missing(module)
    if message is not None:
        context.fault(Problem.ENVIRONMENT, record, key, message)


def _library(context: Context, auth: CloudAuth) -> str | None:
    if isinstance(auth, GcpAuth):
        return "google.auth"
    if not isinstance(auth, AwsAuth) or auth.keys is not None:
        return None
    at_hand = all(context.environ.get(name) for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"))
    return None if at_hand else "botocore"
