"""The checked file to the IR: every spelling ends here in binds, listeners and routes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from headgate.config.backends import NO_AGENT, Backends
from headgate.config.check import Record
from headgate.config.context import Context, Notes
from headgate.config.frontend_settings import attached, frontend
from headgate.config.policy_values import BackendOptions, gateway_policies, of_whole
from headgate.config.ports import DEFAULT, WILDCARD, OpenListener, PortMode, Ports
from headgate.config.process_settings import hbone_settings, process_settings, workload_api
from headgate.config.request_log import has_stored
from headgate.config.routes import Routes, RouteSpec
from headgate.config.targeted import Layer, ListenerPlace, Unused, merge_gateway
from headgate.config.tcp_routes import TcpRoutes
from headgate.config.ui_route import SECTION, at_listener, is_unguarded, ui_matches
from headgate.errors import Problem
from headgate.ir.backend import RouteBackend
from headgate.ir.bind import Bind
from headgate.ir.digest import digest
from headgate.ir.gateway import Gateway
from headgate.ir.listener import Listener
from headgate.ir.match import ANY_REQUEST, Match, PathMatch
from headgate.ir.policies import NO_GATEWAY_POLICIES, GatewayPolicies
from headgate.ir.policy.identity import ApiKeyAuth
from headgate.ir.process import ProcessSettings
from headgate.ir.route import Route
from headgate.ir.virtual_keys import VirtualKeys

LLM_PORT: Final = 4000
MCP_PORT: Final = 3000
INTERNAL: Final = "internal"
MCP_PATHS: Final = tuple(
    Match(path=PathMatch(kind="prefix", value=path)) for path in ("/mcp", "/sse", "/.well-known")
)
TWO_KEYS: Final = (
    "virtual keys are taken here and, from another place of the request, at its gateway: a request with both counts "
    "for each, its tokens and money for the key of the route, and may use what both may"
)
PLAIN_AND_VIRTUAL: Final = (
    "virtual keys are taken here, and keys of the file, from another place of the request, at its gateway: a request "
    "with both may use the models that both may"
)
ANY_ADDRESS: Final = {True: "::", False: "0.0.0.0"}  # noqa: S104


class Standalone:
    """Builds the gateway of one file."""

    def __init__(self, context: Context, root: Record) -> None:
        self.context = context
        self.root = root
        self._functions()
        keys = root.get("virtualKeys")
        context.can_have_keys = has_stored(self.section("config")) or (keys is not None and bool(keys.get("keys")))
        context.has_workload_api = workload_api(context, self.section("config")) is not None
        context.hbone = hbone_settings(self.section("config"))
        self.client_side = attached(context, self.section("frontendPolicies"), root.records("policies"))
        nothing = Record(root.node, "", {})
        of_ports = {port: side.record.get("tls") or nothing for port, side in self.client_side.ports.items()}
        self.ports = Ports(context, self.client_side.whole.get("tls") or nothing, of_ports)
        self.backends = Backends(context)
        # All that policies may name is known before the first one is read.
        context.directory = self.backends
        self.targeted = self.backends.targeted
        self.targeted.declare([one for one in root.records("policies") if "frontend" not in one])
        self.backends.declare(root.records("backends"))
        self.backends.services.declare(root.records("services"), root.records("workloads"))
        self.backends.read()
        self.targeted.read()
        self.routes = Routes(context, self.backends, self.targeted)
        self.tcp_routes = TcpRoutes(context, self.backends)
        # The routes that stand in lists of the file.
        self.listed: list[RouteSpec] = []
        # Over everything but the ports.
        self.rest_digest = ""

    def _functions(self) -> None:
        """Read the functions that expressions may call, before any expression."""
        record = self.section("config")
        if not record.get("customFunctions"):
            return
        from headgate.expr.compile import check_functions  # see headgate.expr.faults
        from headgate.expr.custom import parsed_functions

        try:
            functions = parsed_functions(record.get("customFunctions", ""))
            check_functions(functions)
            self.context.functions = functions
        except ValueError as error:
            self.context.fault(Problem.VALUE, record, "customFunctions", str(error))
            self.context.report.first.add(f"{record.path}.customFunctions")
            self.context.has_all_functions = False

    def section(self, key: str) -> Record:
        return self.root.get(key) or Record(self.root.node, key, {})

    def gateway(self) -> Gateway:
        """Return the IR; faults are in the report, and the result counts only when there are none."""
        process = self.section("config")
        settings = process_settings(self.context, process)
        client_side = frontend(self.context, self.client_side.whole, process)
        log = client_side.access_log
        if settings.request_log is None and (log.database_add or log.database_full):
            self.context.warnings.append("frontendPolicies.accessLog.database: there is no config.database to write to")
        self.ports.open_gateways(self.root.get("gateways") or {})
        self.routes.groups.declare(self.root.records("routeGroups"))
        self._binds()
        self._routes()
        self._tcp_routes()
        self._llm()
        self._mcp()
        self._ui()
        binds = self._finish(self.context.bind_host or ANY_ADDRESS[settings.ipv6], process)
        backends = self.backends.for_dump()
        self.backends.internal.check(binds)
        policies = tuple(self.targeted.dumped)
        services, workloads = self.backends.services.for_dump()
        keys = self._virtual_keys(settings)
        self._warn_of_unpriced(keys, settings, binds)
        self.rest_digest = digest(
            backends, policies, client_side, settings, services, workloads, self.context.hbone, keys
        )
        expressions = dict(self.context.notes.expressions)
        for spec in self.listed:
            assert spec.listed is not None
            expressions.update(spec.listed.notes.expressions)
        return Gateway(
            binds=binds,
            backends=backends,
            policies=policies,
            frontend=client_side,
            process=settings,
            services=services,
            workloads=workloads,
            hbone=self.context.hbone,
            virtual_keys=keys,
            expressions=frozenset(expressions),
            digest=whole_digest(binds, self.rest_digest),
        )

    def _virtual_keys(self, settings: ProcessSettings) -> VirtualKeys | None:
        record = self.root.get("virtualKeys")
        if record is None:
            return None
        from headgate.config import virtual_keys  # as other sections that few files have

        return virtual_keys.parse(self.context, record, settings)

    def _warn_of_unpriced(self, keys: VirtualKeys | None, settings: ProcessSettings, binds: tuple[Bind, ...]) -> None:
        if keys is not None and any(limit.unit == "dollars" for limit in keys.all_limits()):
            from headgate.config.unpriced import unpriced  # where money is limited

            self.context.warnings.extend(unpriced(settings.prices, binds))

    def _binds(self) -> None:
        for index, record in enumerate(self.root.records("binds")):
            port = record.get("port")
            if record.get("mode", "standard") is None or record.get("tunnelProtocol", "direct") is None:
                continue
            internal = record.get("mode") == "internal"
            if port is None and internal:
                port = WILDCARD
            if port is None:
                self.context.report.add(Problem.MISSING, "", f"{record.path}.port is required", record.node)
                continue
            if not self.ports.claim(port, f"binds[{index}]", record):
                continue
            self.ports.modes[port] = PortMode(record.get("tunnelProtocol", "direct"), internal)
            if internal and record.get("tunnelProtocol", "direct") != "direct":
                message = "an internal bind is within a tunnel already"
                self.context.fault(Problem.CONFLICT, record, "tunnelProtocol", message)
            for number, entry in enumerate(record.records("listeners")):
                self._bind_listener(port, number, entry)

    def _bind_listener(self, port: int, number: int, record: Record) -> None:
        name = record.get("name") or f"listener{number}"
        namespace = record.get("namespace") or DEFAULT
        listener = OpenListener(
            key=f"{namespace}/{DEFAULT}:{port}.{name}",
            name=name,
            port=port,
            record=record,
        )
        if self.ports.open(listener) is None:
            return
        other = "tcpRoutes" if listener.carries_http else "routes"
        if record.get(other):
            self.context.fault(Problem.CONFLICT, record, other, f"protocol {listener.protocol} has no {other}")
            return
        for index, entry in enumerate(record.records("tcpRoutes")):
            self.tcp_routes.attach(entry, index, [listener], scope=listener.key)
        for index, entry in enumerate(record.records("routes")):
            spec = self.routes.spec(entry, index, scope=listener.key)
            self.listed.append(spec)
            listener.routes.append(spec)

    def _routes(self) -> None:
        for index, record in enumerate(self.root.records("routes")):
            spec = self.routes.spec(record, index)
            self.listed.append(spec)
            listeners = self.ports.resolve(record)
            if listeners is None:
                path = f"routes.{spec.name}"
                self.context.report.add(Problem.MISSING, "", f"{path} must set gateways", record.node)
                continue
            self._attach(spec, listeners)

    def _tcp_routes(self) -> None:
        for index, record in enumerate(self.root.records("tcpRoutes")):
            listeners = self.ports.resolve(record, tcp=True)
            if listeners is None:
                path = f"tcpRoutes.{record.get('name') or f'route{index}'}"
                self.context.report.add(Problem.MISSING, "", f"{path} must set gateways", record.node)
                continue
            self.tcp_routes.attach(record, index, listeners)

    def _attach(self, spec: RouteSpec, listeners: list[OpenListener]) -> None:
        for listener in listeners:
            listener.routes.append(spec)

    def _section_listeners(
        self, name: str, record: Record, port: int, own: tuple[str, ...]
    ) -> tuple[list[OpenListener], bool]:
        """Return the listeners of the `llm` or `mcp` section, and whether they are its own.

        `own` are the keys that mean a port of its own.
        """
        given = [key for key in own if record.get(key) is not None]
        if record.get("gateways") and given:
            for key in given:
                message = f"{name}.gateways and {name}.{key} are mutually exclusive"
                self.context.fault(Problem.CONFLICT, record, key, message)
            return [], True
        found = None if given else self.ports.resolve(record)
        if found is not None:
            return found, False
        return self.ports.open_own(record.get("port") or port, name, record), True

    def _llm(self) -> None:
        record = self.root.get("llm")
        if record is None:
            return
        from headgate.config.llm_models import Models  # as other kinds of backends, with the first one

        listeners, _ = self._section_listeners("llm", record, LLM_PORT, ("port", "tls"))
        models = Models(self.context, self.backends, record)
        spec = self.routes.make(record, ("llm:request", INTERNAL, None))
        if spec.inline.options.guardrails is not None:
            self.context.fault(Problem.CONFLICT, record, "policies", "mcpGuardrails is for MCP backends")
        spec.factory = lambda options: (
            RouteBackend(backend=models.router(options)),
        )
        self._attach(spec, listeners)

    def _mcp(self) -> None:
        record = self.root.get("mcp")
        if record is None:
            return
        listeners, own = self._section_listeners("mcp", record, MCP_PORT, ("port",))
        policies = record.get("policies")
        if policies is not None and policies.get("a2a") is not None:
            self.context.fault(Problem.CONFLICT, policies, "a2a", NO_AGENT)
        if policies is not None and policies.get("ai") is not None:
            self.context.fault(Problem.CONFLICT, policies, "ai", "ai is for AI backends")
        spec = self.routes.make(
            record, ("default", INTERNAL, None), matches=(ANY_REQUEST,) if own else MCP_PATHS
        )

        def backends(options: BackendOptions) -> tuple[RouteBackend, ...]:
            backend = self.backends.mcp(record, "mcp", options)
            return (RouteBackend(backend=backend, policies=of_whole(options)),) if backend is not None else ()

        spec.factory = backends
        self._attach(spec, listeners)

    def _ui(self) -> None:
        record = self.root.get("ui")
        if record is None:
            return
        listeners = self.ports.resolve(record)
        if listeners is None:
            # Without a gateway the page is on the admin port only, which has no policies.
            if record.get("policies") is not None:
                self.context.fault(
                    Problem.MISSING, record, "policies", "there is no gateway that they could hold at: set ui.gateways"
                )
            return
        spec = self.routes.make(record, ("ui", INTERNAL, None))
        spec.matches = ui_matches(spec.inline.policies)
        spec.factory = lambda _options: (RouteBackend(backend=SECTION),)
        self._attach(spec, listeners)

    def _finish(self, host: str, process: Record) -> tuple[Bind, ...]:
        binds = []
        for port, side in self.client_side.ports.items():
            if port not in self.ports.listeners:
                message = f"policies[].frontend is for port {port}, which is not open"
                self.context.fault(Problem.REFERENCE, side.record, "", message)
        for port, listeners in sorted(self.ports.listeners.items()):
            built = tuple(self._listener(listener) for listener in listeners)
            mode = self.ports.modes.get(port, PortMode())
            own = self.client_side.ports.get(port)
            binds.append(
                Bind(
                    key=self.ports.key(port),
                    host=host,
                    port=port,
                    listeners=built,
                    proxied=mode.tunnel == "proxy",
                    tunnels=mode.tunnel == "connect" or mode.hbone,
                    internal=mode.internal,
                    hbone=self.context.hbone if mode.hbone else None,
                    frontend=None if own is None else frontend(self.context, own.record, process, own.own),
                )
            )
        return tuple(binds)

    def _listener(self, listener: OpenListener) -> Listener:
        if not listener.carries_http:
            return self._tcp_listener(listener)
        place = ListenerPlace(DEFAULT, DEFAULT, listener.names, listener.port)
        above: list[Layer] = self.targeted.for_listener(place)
        policies = merge_gateway(above, self._gateway_phase(listener))
        routes = tuple(route for spec in listener.routes for route in self._routes_of(spec, above, listener, policies))
        return Listener(
            key=listener.key,
            gateway_name=DEFAULT,
            gateway_namespace=DEFAULT,
            name=listener.name,
            protocol=listener.protocol,
            hostname=listener.hostname,
            tls=listener.tls,
            policies=policies,
            routes=routes,
        )

    def _warn_of_two_keys(self, spec: RouteSpec, outer: ApiKeyAuth, routes: tuple[Route, ...]) -> None:
        inner = [route.policies.api_key for route in routes]
        if any(one is not None and one.virtual and one.location != outer.location for one in inner):
            self.context.warnings.append(f"{spec.path}: {TWO_KEYS if outer.virtual else PLAIN_AND_VIRTUAL}")

    def _tcp_listener(self, listener: OpenListener) -> Listener:
        if self._gateway_phase(listener) != NO_GATEWAY_POLICIES:
            message = f"policies of a listener are for HTTP, and this one speaks {listener.protocol}"
            self.context.fault(Problem.CONFLICT, listener.record, "", message)
        return Listener(
            key=listener.key,
            gateway_name=DEFAULT,
            gateway_namespace=DEFAULT,
            name=listener.name,
            protocol=listener.protocol,
            hostname=listener.hostname,
            tls=listener.tls,
            tcp_routes=tuple(listener.tcp_routes),
        )

    def _routes_of(
        self, spec: RouteSpec, above: list[Layer], listener: OpenListener, policies: GatewayPolicies
    ) -> tuple[Route, ...]:
        routes = self.routes.build(spec, above)
        if policies.api_key is not None and policies.api_key.virtual:
            routes = tuple(self.routes.for_keys(route) for route in routes)
        if policies.api_key is not None:
            self._warn_of_two_keys(spec, policies.api_key, routes)
        if self.root.get("ui") is not None or self.backends.internal.to_admin:
            fixed = listener.tls is not None or listener.hostname is not None
            routes = tuple(at_listener(route, policies, fixed_name=fixed) for route in routes)
            if is_unguarded(routes):
                notes = self.context.notes if spec.listed is None else spec.listed.notes
                where = "ui" if spec.listed is None else spec.path
                told = f"the admin page at {listener.key} asks for no credential"
                notes.warnings.append(f"{where}: {told}: whoever reaches it reads what it shows")
        if spec.listed is not None:
            spec.listed.built[listener.key] = routes
        return routes

    def about_unused(self) -> dict[str, Unused]:
        """Return what to say of each policy whose target matches nothing, and of each route group that no route uses;
        by what stands for them in Notes.used.
        """
        return self.targeted.about_unused() | self.routes.groups.about_unused()

    def _gateway_phase(self, listener: OpenListener) -> GatewayPolicies:
        """Return what is written on the listener itself: beside its name, or under `policies` in `binds`."""
        record = listener.record.get("policies") or listener.record
        return gateway_policies(self.context, record, f"listener/{listener.key}")


def lower(context: Context, root: Record) -> Gateway:
    """Return the IR of a checked file."""
    return Standalone(context, root).gateway()


def whole_digest(binds: tuple[Bind, ...], rest: str) -> str:
    """Return the digest of a configuration by its ports and that of the rest."""
    return digest(binds, rest)


class AllNotes(NamedTuple):
    """All warnings, all files that are named, by path why a policy is refused whose target matches nothing, and whether
    the SPIFFE Workload API is needed.
    """

    warnings: list[str]
    files: list[str]
    refused: dict[str, str]
    spiffe: bool


def all_notes(outer: Notes, routes: Iterable[Notes], unused: Mapping[str, Unused]) -> AllNotes:
    """Return the notes of all parts; `unused`: what to say of policies that nobody uses, by path."""
    used = set(outer.used)
    warnings, watched = dict.fromkeys(outer.warnings), dict(outer.watched)
    found: dict[str, None] = {}
    spiffe = outer.spiffe
    for notes in routes:
        spiffe = spiffe or notes.spiffe
        if notes.used:
            used |= notes.used
        if notes.warnings:
            found.update(dict.fromkeys(notes.warnings))
        if notes.watched:
            watched.update(notes.watched)
    left = {path: one for path, one in unused.items() if path not in used}
    warnings.update({f"{path}: {one.message}": None for path, one in left.items() if not one.refused})
    warnings.update(found)
    refused = {path: one.message for path, one in left.items() if one.refused}
    return AllNotes(list(warnings), list(watched), refused, spiffe)
