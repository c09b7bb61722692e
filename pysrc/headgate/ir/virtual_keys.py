"""Virtual keys: credentials for clients that are made, changed and revoked at run time, and their teams."""

from __future__ import annotations

from typing import Final, Literal

from headgate.document.lazy_dataclass import dataclass
from headgate.document.secret import Secret

LimitUnit = Literal["requests", "tokens", "dollars"]
LimitWindow = Literal["minute", "day", "month"]
# Where gateways lease what they spend of limits: the database, or the Redis server of the shared state.
LeaseStore = Literal["postgres", "redis"]
# Without that store: each gateway decides by what it knows of the others, or nothing is let pass.
LeaseFailure = Literal["local", "deny"]
# Tokens of an answer whose length neither the request nor the configuration bounds.
ASSUMED_OUTPUT: Final = 4096
# Tokens of a picture: the most that Anthropic counts (https://docs.anthropic.com/en/docs/build-with-claude/vision), and
# about what OpenAI and Google count for a large one.
ASSUMED_IMAGE: Final = 1600
# Tokens of a file, sound or earlier turns that a request only names.
ASSUMED_INPUT: Final = 32_768


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageLimit:
    """A limit on what is used in a window of the calendar (UTC). `most` is in picodollars where the unit is dollars.

    Responses warn from `warn_percent` of it on, None: they do not.
    """

    unit: LimitUnit
    window: LimitWindow
    most: int
    warn_percent: int | None = None


def warns_from(limit: UsageLimit) -> int:
    """Return the sum from which a limit warns, -1: it does not."""
    return -1 if limit.warn_percent is None else -(-limit.most * limit.warn_percent // 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertHook:
    """The receiver of warnings about limits. `place` is what may be shown of the URL.

    `secret` signs what is sent, None: nothing does.
    """

    url: Secret
    place: str
    secret: Secret | None = None
    timeout_ms: int = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyTeam:
    """A team. `limits` hold for all of its keys together, `key_limits` for each key without its own limits.

    `models`, `tools` and `routes` hold for keys that do not say these (None: all).
    """

    name: str
    limits: tuple[UsageLimit, ...] = ()
    key_limits: tuple[UsageLimit, ...] = ()
    models: tuple[str, ...] | None = None
    tools: tuple[str, ...] | None = None
    routes: tuple[tuple[str, str], ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRecord:
    """A virtual key, with what it inherits from its team. `digest` is the SHA-256 digest of what clients present.

    `metadata` is JSON: what expressions see as `apiKey`. `models` are patterns of models, `tools` names of MCP tools,
    `routes` pairs of namespace and name; None: all. `expires_s` is in Unix seconds, None: never.
    """

    name: str
    digest: bytes
    metadata: str
    team: str = ""
    models: tuple[str, ...] | None = None
    tools: tuple[str, ...] | None = None
    routes: tuple[tuple[str, str], ...] | None = None
    expires_s: int | None = None
    revoked: bool = False
    limits: tuple[UsageLimit, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualKeys:
    """All virtual keys of a configuration.

    `assumed_output`: tokens of an answer whose length a request does not bound. `assumed_image`: tokens of a picture.
    `assumed_input`: tokens of what a request names and does not carry. `leases`: the store that other gateways
    lease from as well, None: this gateway is alone. `failure`: what holds without it. `stops`: a stream ends where
    limits have no more for it. `journal`: the folder with what was spent last, None: `/dev/shm`.
    """

    keys: tuple[KeyRecord, ...] = ()
    teams: tuple[KeyTeam, ...] = ()
    assumed_output: int = ASSUMED_OUTPUT
    assumed_image: int = ASSUMED_IMAGE
    assumed_input: int = ASSUMED_INPUT
    leases: LeaseStore | None = None
    failure: LeaseFailure = "local"
    alerts: AlertHook | None = None
    stops: bool = False
    journal: str | None = None

    def all_limits(self) -> tuple[UsageLimit, ...]:
        """Return the limits of all keys and teams."""
        given: tuple[KeyRecord | KeyTeam, ...] = (*self.keys, *self.teams)
        return tuple(limit for one in given for limit in one.limits)
