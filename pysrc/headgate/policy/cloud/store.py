"""The cloud credentials of a worker. Equal credentials are shared, and a reload keeps those that are still in use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Final

from headgate.document.lazy_dataclass import replace
from headgate.ir.policy.cloud_auth import AwsAuth, AwsRole, AzureAuth, CloudAuth, CopilotAuth, GcpAuth
from headgate.policy.cloud.aws import Ambient, Role, StaticKeys, role_form
from headgate.policy.cloud.azure import Entra
from headgate.policy.cloud.calls import Calls
from headgate.policy.cloud.copilot import Copilot
from headgate.policy.cloud.gcp import Google
from headgate.policy.cloud.refresher import CredentialRefresher, Fetch

# Maximum number of role sessions that depend on requests; the least recently used one is dropped.
MAX_SESSIONS: Final = 1024
Tags = tuple[tuple[str, str], ...]


class CredentialStore:
    """The credentials of one configuration. `calls` is shared with the following configurations."""

    def __init__(self, spawn: Callable[..., asyncio.Task[None]], previous: CredentialStore | None = None) -> None:
        self.calls: Calls = Calls() if previous is None else previous.calls
        self._spawn = spawn
        self._previous = {} if previous is None else previous.by_key
        self._sessions: dict[Hashable, CredentialRefresher] = {} if previous is None else previous._sessions
        self.by_key: dict[Hashable, CredentialRefresher] = {}

    def _get(self, key: Hashable, name: str, fetch: Callable[[], Fetch]) -> CredentialRefresher:
        found = self.by_key.get(key) or self._previous.get(key)
        if found is None:
            found = CredentialRefresher(name, fetch(), self._spawn)
            # Fetched now, before the first request needs it.
            found.renew()
        self.by_key[key] = found
        return found

    def refresher(self, auth: CloudAuth) -> CredentialRefresher:
        """Return the refresher of a credential that is the same for all requests."""
        match auth:
            case AwsAuth():
                return self._aws(auth)
            case GcpAuth():
                return self._get(auth, "Google", lambda: Google(auth, self.calls))
            case AzureAuth():
                return self._get(auth, "Azure", lambda: Entra(auth, self.calls))
            case CopilotAuth():
                return self._get(auth, "Copilot", lambda: Copilot(self.calls))

    def _aws(self, auth: AwsAuth) -> CredentialRefresher:
        role = auth.role
        if role is not None:
            return self._get(
                replace(auth, service=None), "AWS role", lambda: self._role(auth, role, role.session, _fixed(role))
            )
        keys = auth.keys
        # The same keys sign for all regions and services.
        key = replace(auth, region=None, service=None)
        return self._get(key, "AWS", lambda: Ambient() if keys is None else StaticKeys(keys))

    def _role(self, auth: AwsAuth, role: AwsRole, session: str, tags: Tags) -> Role:
        base = self._aws(replace(auth, role=None))
        return Role(base, self.calls, role_form(role.arn, session, tags), auth.region)

    def session(self, auth: AwsAuth, session: str, tags: Tags) -> CredentialRefresher:
        """Return the refresher of a role session that depends on the request."""
        role = auth.role
        assert role is not None
        key = (replace(auth, service=None), session, tags)
        found = self._sessions.pop(key, None)
        if found is None:
            found = CredentialRefresher("AWS role", self._role(auth, role, session, tags), self._spawn)
            if len(self._sessions) >= MAX_SESSIONS:
                self._sessions.pop(next(iter(self._sessions))).close()
        self._sessions[key] = found
        return found

    def close_unused(self, current: CredentialStore) -> None:
        """Close the refreshers that `current` has not taken over."""
        current._previous = {}
        for key, refresher in self.by_key.items():
            if current.by_key.get(key) is not refresher:
                refresher.close()

    def close(self) -> None:
        """Close all refreshers."""
        for refresher in (*self.by_key.values(), *self._sessions.values()):
            refresher.close()


def _fixed(role: AwsRole) -> Tags:
    return tuple((tag.key, tag.value) for tag in role.tags)
