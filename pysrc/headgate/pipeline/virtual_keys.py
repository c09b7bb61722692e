"""The virtual keys of a worker: objects of the engine for those of a configuration, which come into force at once."""

from __future__ import annotations

import json
from collections.abc import Generator
from functools import partial
from typing import Final

from headgate.backend.llm.realtime_limits import converse
from headgate.ir.virtual_keys import KeyRecord, KeyTeam, UsageLimit, VirtualKeys, warns_from
from headgate_engine.limit.account import LeaseState, UsageAccount, UsageLimits
from headgate_engine.llm.pattern import ModelPattern
from headgate_engine.shared.segment import Segment
from headgate_engine.steps.virtual_key import KeyTable, VirtualKey

# Keys that are compiled between two yields.
STEP: Final = 32


class CompiledKeys:
    """The keys of one configuration. `table` is that of the worker, which steps of kept plans hold as well."""

    def __init__(self, segment: Segment, before: CompiledKeys | None) -> None:
        self._segment = segment
        self._before = before
        self._first = before is None
        self.table: KeyTable = KeyTable() if before is None else before.table
        # That of the worker: limits that stay hold it as well.
        self.state: LeaseState = LeaseState(segment) if before is None else before.state
        self._keys = VirtualKeys()
        self.by_digest: dict[bytes, VirtualKey] = {}
        # What each was made of.
        self.made: dict[tuple[KeyRecord, KeyTeam | None], VirtualKey] = {}
        self.accounts: dict[tuple[str, str], UsageAccount] = {}

    def compile(self, keys: VirtualKeys | None) -> Generator[None, None, None]:
        """Compile the keys, in steps. Raises SegmentFull."""
        found = self._keys = VirtualKeys() if keys is None else keys
        teams = {team.name: team for team in found.teams}
        for number, record in enumerate(found.keys):
            self.by_digest[record.digest] = self._key(record, teams.get(record.team))
            if not number % STEP:
                yield
        self._before = None

    def turn(self) -> None:
        """Put the keys in force."""
        keys, desk = self._keys, None
        self.state.configure(keys.leases is not None, keys.failure == "local")
        if keys.leases is not None:
            from headgate.policy.leases import DESK  # where gateways share a store

            desk = DESK
            desk.use(self.state)
        assumed = (keys.assumed_output, keys.assumed_image, keys.assumed_input)
        holds = partial(converse, keys.assumed_image)
        self.table.turn(self.by_digest, assumed, self.state, desk, stops=keys.stops, converse=holds)

    def _key(self, record: KeyRecord, team: KeyTeam | None) -> VirtualKey:
        before = None if self._before is None else self._before.made.get((record, team))
        accounts = [self._account("key", record.name)]
        if team is not None:
            accounts.append(self._account("team", team.name))
        if before is None:
            given = [record.limits, () if team is None else team.limits]
            limits = [
                UsageLimits(account, map(_limit, ours), self.state)
                for account, ours in zip(accounts, given, strict=False)
            ]
            before = VirtualKey(
                self._segment, (record.name, record.team), json.loads(record.metadata), limits,
                (None if record.models is None else map(ModelPattern, record.models), record.routes),
                (record.expires_s or 0, record.revoked),
            )  # fmt: skip
        self.made[record, team] = before
        return before

    def _account(self, scope: str, name: str) -> UsageAccount:
        """Return the account of a key or a team, which stays while somebody holds it."""
        found = self.accounts.get((scope, name))
        if found is None and self._before is not None:
            found = self._before.accounts.get((scope, name))
        if found is None:
            found = UsageAccount(self._segment, scope, name)
            if self._first:
                # A new process has reserved nothing: what is there is of the one that it replaces.
                found.forget(self._segment.holder)
        self.accounts[scope, name] = found
        return found


def _limit(limit: UsageLimit) -> tuple[str, str, int, int]:
    return limit.window, limit.unit, limit.most, warns_from(limit)
