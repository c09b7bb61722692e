"""Traces in a worker: takes the watchers that the supervisor offers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from headgate.ir.gateway import Gateway
from headgate.server.control import WatchCommand
from headgate_engine.link.worker import Worker
from headgate_engine.shared.segment import Segment

if TYPE_CHECKING:  # a worker that nobody watches loads none of it
    from headgate.trace.watchers import Watchers


class Watching:
    """The watchers of one worker; `worker.watchers` is set while there are any."""

    def __init__(self, worker: Worker, segment: Segment) -> None:
        self._worker = worker
        self._segment = segment
        self._watchers: Watchers | None = None
        # Of watchers that came before the first configuration, by their numbers; the supervisor bounds them.
        self._early: dict[int, tuple[WatchCommand, int]] = {}

    def add(self, message: WatchCommand, descriptor: int, gateway: Gateway | None) -> list[str]:
        """Add a watcher; `descriptor` is its pipe to the supervisor. Return the error of its expression, if any.

        Without a configuration (None) it waits for one, so that a worker which takes the place of another has all
        watchers before its first request. An expression is then compiled later, and one with an error watches nothing.
        """
        if gateway is None:
            self._drop_early(message.number)
            self._early[message.number] = (message, descriptor)
            return []
        from headgate.trace.watchers import Watcher

        program = None
        if message.expression:
            from headgate.expr.compile import compile_expression
            from headgate.expr.custom import parse_functions
            from headgate.expr.faults import ExpressionError

            text = gateway.process.custom_functions
            try:
                program = compile_expression(message.expression, "gateway", parse_functions(text) if text else {})
            except ExpressionError as error:
                os.close(descriptor)
                return [str(error)]
        watchers = self._list(gateway)
        watchers.body_limit = message.body_limit
        watchers.add(Watcher(message.number, descriptor, program))
        return []

    def drop(self, number: int) -> None:
        """Forget one."""
        self._drop_early(number)
        if self._watchers is not None:
            self._watchers.drop(number)

    def configured(self, gateway: Gateway) -> None:
        """Note that a new configuration is in force."""
        early, self._early = self._early, {}
        for message, descriptor in early.values():
            self.add(message, descriptor, gateway)
        if self._watchers is not None:
            from headgate.server.descriptions import PlanDescriptions

            self._watchers.descriptions = PlanDescriptions(gateway)

    def _drop_early(self, number: int) -> None:
        found = self._early.pop(number, None)
        if found is not None:
            os.close(found[1])

    def _list(self, gateway: Gateway) -> Watchers:
        from headgate.server.descriptions import PlanDescriptions
        from headgate.trace.offer import CLAIMS
        from headgate.trace.watchers import Watchers
        from headgate_engine.shared.claims import SlotClaims

        def changed(watchers: Watchers | None) -> None:
            self._worker.watchers = watchers

        if self._watchers is None:
            self._watchers = Watchers(SlotClaims(self._segment, CLAIMS), changed)
        self._watchers.descriptions = PlanDescriptions(gateway)
        return self._watchers
