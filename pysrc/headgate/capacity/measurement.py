"""A whole measurement: its target, its steps, and the report."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headgate.capacity import workload
from headgate.capacity.errors import BenchError
from headgate.capacity.figures import StepFigures
from headgate.capacity.mcp_session import BenchSession
from headgate.capacity.own_gateway import BenchGateway, OwnPeers, configuration, free_port, write_configuration
from headgate.capacity.report.document import document_of
from headgate.capacity.saturation import Bounds, SearchResult, search
from headgate.capacity.stand_ins.answers import Behaviour
from headgate.capacity.step import LoadShape, Tick, Traffic, first_answer, raise_descriptor_limit, run_step
from headgate.capacity.transport import Trust, address_of, requests_of, target_of
from headgate.capacity.usage import TargetMeter, listening_pid
from headgate.capacity.workload import Fields, RequestSpec, TargetPlace

# Descriptors beside those of connections.
SPARE_DESCRIPTORS = 64
MOST_SESSIONS = 16


@dataclass(frozen=True)
class MeasurementPlan:
    """What is to be measured. url: None: a gateway of our own; rate: requests a second, 0: as fast as connections
    allow."""

    url: str | None = None
    kind: str = "http"
    rate: float = 100.0
    saturate: bool = False
    repeat: int = 1
    shape: LoadShape = field(default_factory=lambda: LoadShape(32))
    bounds: Bounds = field(default_factory=Bounds)
    method: str = "GET"
    fields: Fields = ()
    body: bytes | None = None
    form: str = "completions"
    model: str = "bench"
    prompt: str = ""
    tool: str | None = None
    arguments: dict[str, Any] | None = None
    pid: int | None = None
    trust: Trust = field(default_factory=Trust)
    file: str | None = None
    workers: int = 1
    behaviour: Behaviour = field(default_factory=Behaviour)
    check: bool = True


class Measurement:
    """Sets up what is measured for the length of a `with`, and measures. told: is told how a step goes on;
    step_done: its end."""

    def __init__(
        self, wanted: MeasurementPlan, told: Callable[[Tick], None], step_done: Callable[[StepFigures], None]
    ) -> None:
        self.wanted, self.told, self.step_done = wanted, told, step_done
        self.stack = contextlib.ExitStack()
        self.own: BenchGateway | None = None

    def run(self) -> dict[str, Any]:
        """Return the report. Raises BenchError."""
        wanted = self.wanted
        raise_descriptor_limit(wanted.shape.connections + SPARE_DESCRIPTORS)
        with self.stack:
            place = self._place()
            target = target_of(place, wanted.trust, wanted.shape.streams > 0)
            specs = self._specs(place)
            traffic = Traffic(target, requests_of(specs, place))
            meter = self._meter(place)
            if wanted.check:
                first_answer(traffic, wanted.shape)

            def measure(rate: float) -> StepFigures:
                return run_step(traffic, wanted.shape, rate, meter, self.told)

            found: SearchResult | None = None
            if wanted.saturate:
                found = search(measure, wanted.rate, wanted.bounds, self.step_done)
                steps = found.steps
            else:
                steps = []
                for _ in range(wanted.repeat):
                    steps.append(measure(wanted.rate))
                    self.step_done(steps[-1])
            return document_of(self._workload(place, specs), steps, found)

    def _workload(self, place: TargetPlace, specs: tuple[RequestSpec, ...]) -> dict[str, Any]:
        wanted, shape = self.wanted, self.wanted.shape
        return {
            "kind": wanted.kind, "method": specs[0].method, "url": place.shown,
            "protocol": "2" if shape.streams else "1.1",
            "connections": shape.connections, "streams": shape.streams, "processes": shape.processes,
            "keep_alive": shape.reuse,
            "timeout": shape.timeout, "warm_up": shape.warm_up, "seconds": shape.seconds,
            "body_bytes": len(specs[0].body),
            "own_gateway": self.own is not None and wanted.file is None,
        }  # fmt: skip

    def _place(self) -> TargetPlace:
        """Return where requests go; starts what is to be started."""
        wanted = self.wanted
        if wanted.file is not None:
            if wanted.url is None:
                raise BenchError("with --file, a URL of that gateway is needed as well")
            self.own = self.stack.enter_context(BenchGateway(["-f", wanted.file]))
        if wanted.url is not None:
            place = workload.place_of(wanted.url)
        else:
            peers = self.stack.enter_context(OwnPeers(wanted.behaviour, 1))
            folder = Path(self.stack.enter_context(tempfile.TemporaryDirectory(prefix="headgate-bench-")))
            port = free_port()
            document = configuration(wanted.kind, wanted.form, port, peers.port, wanted.workers)
            self.own = self.stack.enter_context(BenchGateway(["-f", str(write_configuration(folder, document))]))
            place = TargetPlace(False, "127.0.0.1", port, "/")
        if wanted.kind in ("chat", "stream"):
            return workload.llm_place(place, wanted.form)
        return workload.mcp_place(place) if wanted.kind == "mcp" else place

    def _meter(self, place: TargetPlace) -> TargetMeter | None:
        if self.wanted.pid is not None:
            return TargetMeter(self.wanted.pid)
        if self.own is not None:
            return TargetMeter(self.own.pid)
        pid = listening_pid(place.port) if address_of(place).local else None
        return None if pid is None else TargetMeter(pid)

    def _specs(self, place: TargetPlace) -> tuple[RequestSpec, ...]:
        wanted = self.wanted
        if wanted.kind == "http":
            return (workload.http_request(place, wanted.method, wanted.fields, wanted.body or b""),)
        if wanted.kind == "mcp":
            return self._calls(place)
        stream = wanted.kind == "stream"
        body = (
            wanted.body
            if wanted.body is not None
            else workload.llm_body(wanted.form, wanted.model, wanted.prompt, stream)
        )
        return (workload.llm_request(place, wanted.form, wanted.fields, body, stream),)

    def _calls(self, place: TargetPlace) -> tuple[RequestSpec, ...]:
        """Return calls of a tool, in several sessions."""
        wanted = self.wanted
        sessions = []
        for _ in range(min(wanted.shape.connections, MOST_SESSIONS)):
            session = BenchSession(place, wanted.fields, wanted.trust)
            session.open()
            self.stack.callback(session.close)
            sessions.append(session)
            if session.id is None:
                break
        tool, arguments = wanted.tool, wanted.arguments
        if tool is None or arguments is None:
            tool, arguments = chosen_tool(sessions[0].tools(), tool, arguments)
        return tuple(workload.tool_call(place, wanted.fields, session.id, tool, arguments) for session in sessions)


# Values for arguments of a tool that have to be there, by their type.
_VALUES: dict[str, Any] = {"string": "text", "integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}


def chosen_tool(
    tools: list[dict[str, Any]], name: str | None, arguments: dict[str, Any] | None
) -> tuple[str, dict[str, Any]]:
    """Return the tool to call, by default the first one, and arguments, by default the required ones by their types.

    Raises BenchError.
    """
    found = next((tool for tool in tools if name in (None, tool["name"])), None)
    if found is None:
        known = ", ".join(tool["name"] for tool in tools) or "none"
        raise BenchError(f"the server has no tool {name}; it has {known}" if name else "the server has no tools")
    if arguments is not None:
        return found["name"], arguments
    schema = found.get("inputSchema", {})
    known_fields = schema.get("properties", {})
    made = {}
    for field_name in schema.get("required", ()):
        kind = known_fields.get(field_name, {}).get("type")
        if kind not in _VALUES:
            example = json.dumps({field_name: "..."})
            raise BenchError(f"the tool {found['name']} needs {field_name}: say --arguments, such as '{example}'")
        made[field_name] = _VALUES[kind]
    return found["name"], made
