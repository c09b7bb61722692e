"""Backends: named ones, those of routes, and MCP targets."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from headgate.config.check import Record
from headgate.config.context import Context, Notes
from headgate.config.internal_ports import InternalPorts
from headgate.config.policy_values import NO_OPTIONS, BackendOptions, Named, backend_options, of_whole
from headgate.config.services import A2A_PROTOCOLS, APP_PROTOCOLS, Services
from headgate.config.targeted import Inherited, TargetedPolicies
from headgate.config.tunnels import Tunnels, of_connection
from headgate.document.fields import ConnectTarget
from headgate.document.lazy_dataclass import replace
from headgate.errors import Problem
from headgate.ir.backend import (
    AgentRuntimeBackend,
    Backend,
    GroupBackend,
    HostBackend,
    MissingBackend,
    NamedBackend,
    RouteBackend,
    ServiceBackend,
    ServiceEndpoint,
)
from headgate.ir.digest import digest
from headgate.ir.endpoint import Endpoint, ProxyTunnel
from headgate.ir.mcp import McpBackend, StdioTarget
from headgate.ir.mcp_guardrails import DEFAULT_TIMEOUT_MS, GuardrailProcessor
from headgate.ir.model import AiBackend, LlmRouter
from headgate.ir.policies import NO_BACKEND_POLICIES, BackendPolicies
from headgate.ir.policy.mirror import CopyTarget
from headgate.ir.remote_service import RemoteService
from headgate.ir.tls import BackendTls

if TYPE_CHECKING:
    from headgate.config.policy.mcp_guardrails import Draft

_OF_MODELS: Final = (AiBackend, LlmRouter, MissingBackend)
NO_AGENT: Final = "a2a is for host, service and aws backends"
Places = tuple[tuple[str, int], ...] | None
Identity = tuple[ConnectTarget, BackendOptions, ProxyTunnel | None, bool, bool, str, Places]


class Backends:
    """Builds backends. Equal connections share one Endpoint."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.targeted = TargetedPolicies(context)
        self._named: dict[str, Named] = {}
        # The names of the route groups of the file.
        self.groups: frozenset[str] = frozenset()
        self.services = Services(context)
        self.internal = InternalPorts(context)
        self._endpoints: dict[Identity, Endpoint] = {}
        self._tunnels = Tunnels(context, self)
        self._hosts: dict[tuple[str, str], HostBackend] = {}
        self._processors: dict[int, tuple[Draft, GuardrailProcessor | None, Notes]] = {}

    def declare(self, records: list[Record]) -> None:
        """Register the `backends[]` of the file by their names. Others may refer to them in any order."""
        for record in records:
            name = record["name"].removeprefix("/")
            if not name:
                self.context.fault(Problem.VALUE, record, "name", "a backend needs a name")
            elif name in self._named:
                self.context.fault(Problem.CONFLICT, record, "name", f"backend {name!r} is declared twice")
            else:
                self._named[name] = Named(self.context, record)

    def read(self) -> None:
        """Read the policies of the registered backends."""
        for named in self._named.values():
            record, options = named.record, named.options
            if record.get("mcp") is None:
                self._refuse_for_others(record, options)
            models = record.get("ai") or record.get("llm")
            if options.ai is not None and models is None:
                self.context.fault(Problem.CONFLICT, record, "policies", "ai is for AI backends")
            if options.a2a and (record.get("mcp") or models) is not None:
                self.context.fault(Problem.CONFLICT, record, "policies", NO_AGENT)

    def named(self, name: str) -> Named | None:
        """Return the backend of a name; None where there is none. What is being read depends on it, one way or the
        other.
        """
        self.context.notes.backends.add(name)
        return self._named.get(name)

    def proxy(
        self, reference: Record, own: BackendOptions
    ) -> tuple[ConnectTarget | ServiceBackend, BackendOptions] | None:
        """Return the endpoint of a proxy reference, and its policies merged with `own`. Returns None after reporting an
        error."""
        host, service, named = (reference.get(key) for key in ("host", "service", "backend"))
        options = self.service_options(reference)
        if named is not None:
            plain = named.removeprefix("/")
            entry = self.named(plain)
            if entry is None:
                self.context.fault(Problem.REFERENCE, reference, "backend", f"no backend is named {named!r}")
                return None
            host, options = entry.record.get("host"), self.targeted.for_backend(plain).under(entry.options)
            if host is None:
                self.context.fault(Problem.VALUE, reference, "backend", "backend type cannot be used as proxy")
                return None
        options = options.under(own)
        if service is None:
            return None if host is None else (host, options)
        found = self.service(service["name"], service["port"], of_connection(options))
        if not isinstance(found, ServiceBackend):
            self.context.fault(Problem.REFERENCE, reference, "service", f"there is no service {service['name']!r}")
            return None
        return found, options

    def for_dump(self) -> tuple[NamedBackend, ...]:
        """Return the named backends with their own policies."""
        found = []
        for name, named in sorted(self._named.items()):
            backend = self._of_record(named.record, f"/{name}", named.options, f"backend/{name}")
            if backend is not None:
                found.append(
                    NamedBackend(name=name, namespace="", backend=backend, policies=named.options.policies())
                )
        return tuple(found)

    def endpoint(
        self,
        target: ConnectTarget,
        options: BackendOptions,
        *,
        infers: bool = False,
        tcp: bool = False,
        discovered: bool = False,
    ) -> Endpoint:
        """Return the endpoint of an address with the connection settings among `options`.

        infers: a protocol that is not configured may be that of the client. tcp: no HTTP is spoken with it.
        discovered: the host name of a service stands for its workloads.
        """
        tls = options.tls or (BackendTls() if target.scheme == "https" else None)
        kept = BackendOptions(
            tls=tls,
            connect_timeout_ms=options.connect_timeout_ms,
            keepalives=options.keepalives,
            http2=options.http2,
        )
        tunnel = self._tunnels.of(options.tunnel, target)
        address = ConnectTarget(target.host, target.port, target.unix_path)
        sent = "" if options.proxy_protocol is None else options.proxy_protocol["version"]
        if tunnel is not None:
            options.refuse_proxy_protocol(self.context, "it cannot be sent through a proxy (backendTunnel)")
        # Behind a proxy the name is the proxy's to resolve.
        places = self.services.places(target.host, target.port) if discovered and tunnel is None else None
        identity = (address, kept, tunnel, infers, tcp, sent, places)
        found = self._endpoints.get(identity)
        if found is None:
            plain = Endpoint(key="", host=target.host, port=target.port, unix_path=target.unix_path, tls=tls)
            key = f"{'https' if tls else 'http'}://{plain.address}"
            if kept not in (NO_OPTIONS, BackendOptions(tls=BackendTls())):
                version = () if kept.http2 is None else (kept.http2,)
                key += f"#{digest(tls, kept.connect_timeout_ms, kept.keepalives, *version)}"
            if tunnel is not None:
                key += f"#through {tunnel.key}"
            if sent:
                key += f"#proxy {sent}"
            if places is not None:
                key += f"#at {digest(places)}"
            found = Endpoint(
                key=key,
                host=target.host,
                port=target.port,
                unix_path=target.unix_path,
                tls=tls,
                connect_timeout_ms=kept.connect_timeout_ms,
                keepalives=kept.keepalives,
                tunnel=tunnel,
                http2=kept.http2,
                infers=infers,
                tcp=tcp,
                proxy_version=sent,
                places=places,
            )
            self._endpoints[identity] = found
        return found

    def delegation(self, owner: str, index: int, record: Record) -> RouteBackend:
        """Return backend number `index` of a route, which is a route group."""
        name = record["routeGroup"]
        key = f"{owner.removeprefix('route/')}>{name}#{index}"
        backend = GroupBackend(key=key, name=name, known=name in self.groups)
        return RouteBackend(backend=backend, weight=record.get("weight", 1))

    def of_route(
        self, records: list[Record], inherited: Inherited, owner: str, own_of_route: BackendOptions | None = None
    ) -> tuple[RouteBackend, ...]:
        """Return the weighted backends of a route; `inherited` are the backend policies of the levels above.

        own_of_route: those of `inherited` that have to suit these backends; None: all of the route.
        """
        wanted = inherited.route if own_of_route is None else own_of_route
        found = []
        for index, record in enumerate(records):
            if record.get("routeGroup") is not None:
                found.append(self.delegation(owner, index, record))
                continue
            own = backend_options(self.context, record.get("policies"))
            named = record.get("backend")
            aimed = NO_OPTIONS
            if named is not None:
                plain = named.removeprefix("/")
                entry = self.named(plain)
                aimed = self.targeted.for_backend(plain)
                of_section = self._of_sections(entry, aimed, inherited, own)
                options = of_section("")
                backend = self.reference(named, options, of_section)
            else:
                options = _suited(inherited, record).around(self.service_options(record)).under(own)
                if record.get("dynamic") is not None:
                    from headgate.config import dynamic_backends  # as other kinds of backends, with the first one

                    options = dynamic_backends.own_credentials(self, record, options, own)
                inline = self._of_record(record, "", options, f"{owner}/{index}")
                if inline is None:
                    continue
                backend = inline
            if not isinstance(backend, McpBackend | MissingBackend):
                self._refuse_for_others(record, own)
            options = self._as_agent(record, backend, options, bool(own.a2a or aimed.a2a))
            if (own.ai or aimed.ai) is not None and not isinstance(backend, _OF_MODELS):
                self.context.fault(Problem.CONFLICT, record, "policies", "ai is for AI backends")
            self._refuse_picked(record, backend, options)
            if isinstance(backend, McpBackend):
                self._refuse_for_stdio(record, backend, own)
            found.append(
                RouteBackend(
                    backend=backend,
                    weight=record.get("weight", 1),
                    named=named is not None,
                    policies=_policies_outside(backend, options),
                )
            )
        for key, value, kind, what in (
            ("mcpAuthorization", wanted.mcp_rules, McpBackend, "MCP"),
            ("mcpGuardrails", wanted.guardrails, McpBackend, "MCP"),
            ("ai", wanted.ai, AiBackend | LlmRouter, "AI"),
            ("a2a", wanted.a2a, HostBackend | ServiceBackend | AgentRuntimeBackend, "host, service and aws"),
        ):
            fitting = kind | MissingBackend | GroupBackend
            if value is not None and not any(isinstance(one.backend, fitting) for one in found):
                for record in records[:1]:
                    self.context.fault(Problem.CONFLICT, record, "", f"{key} of the route is only for {what} backends")
        return tuple(found)

    def _of_sections(
        self, entry: Named | None, aimed: BackendOptions, inherited: Inherited, own: BackendOptions
    ) -> Callable[[str], BackendOptions]:
        """Return what gives the policies of a section of a named backend, "" being the backend. `aimed`: those that
        target it."""
        inherited = inherited if entry is None else _suited(inherited, entry.record)

        def found(section: str) -> BackendOptions:
            options = aimed
            if section and entry is not None:
                options = aimed.under(self.targeted.for_section(entry.record["name"].removeprefix("/"), section))
            its = entry.options if entry else NO_OPTIONS
            whole = inherited.around(options).under(its).under(own)
            if entry is not None and entry.record.get("dynamic") is not None:
                from headgate.config import dynamic_backends  # as other kinds of backends, with the first one

                return dynamic_backends.own_credentials(self, entry.record, whole, options.under(its).under(own))
            return whole

        return found

    def _as_agent(
        self, record: Record, backend: Backend, options: BackendOptions, told: bool
    ) -> BackendOptions:
        """Return the policies of a backend that may be an agent. Some say so themselves, and others cannot be."""
        if isinstance(backend, AgentRuntimeBackend) and options.auth is None:
            from headgate.config import agent_runtime

            options = replace(options, auth=agent_runtime.AMBIENT)
        if isinstance(backend, ServiceBackend) and backend.a2a:
            return replace(options, a2a=True)
        if isinstance(backend, McpBackend | AiBackend | LlmRouter):
            if told:
                self.context.fault(Problem.CONFLICT, record, "policies", NO_AGENT)
            return replace(options, a2a=None)
        return options

    def service_options(self, record: Record) -> BackendOptions:
        """Return the policies that target the service which a record names."""
        service = record.get("service")
        if service is None:
            return NO_OPTIONS
        namespace, _, hostname = service["name"].partition("/")
        return self.targeted.for_service(namespace, hostname, service["port"])

    def _refuse_picked(self, record: Record, backend: Backend, options: BackendOptions) -> None:
        if options.inference is not None and not isinstance(backend, HostBackend | ServiceBackend | MissingBackend):
            self.context.fault(
                Problem.CONFLICT, record, "policies", "inferenceRouting is for host and service backends"
            )
        if options.inference is not None:
            options.refuse_proxy_protocol(self.context, "inferenceRouting shares connections between clients")

    def _refuse_for_others(self, record: Record, own: BackendOptions) -> None:
        for key, value in (("mcpAuthorization", own.mcp_rules), ("mcpGuardrails", own.guardrails)):
            if value is not None:
                self.context.fault(Problem.CONFLICT, record, "policies", f"{key} is for MCP backends")

    def _refuse_for_stdio(self, record: Record, backend: McpBackend, own: BackendOptions) -> None:
        kept = replace(own, mcp_rules=None, guardrails=None, authorization=None, redirect=None, response_headers=None)
        if kept != NO_OPTIONS and any(isinstance(target, StdioTarget) for target in backend.targets):
            self.context.fault(Problem.CONFLICT, record, "policies", "these do not apply to a stdio target")

    def reference(
        self, name: str, options: BackendOptions, of_section: Callable[[str], BackendOptions] | None = None
    ) -> Backend:
        """Return the named backend with `options`, which already include its own policies. of_section: of a section."""
        plain = name.removeprefix("/")
        entry = self.named(plain)
        backend = None
        if entry is not None:
            backend = self._of_record(entry.record, f"/{plain}", options, f"backend/{plain}", of_section)
        else:
            self.context.warnings.append(f"backend {name!r} does not exist: requests to it get 500")
        return backend or MissingBackend(key=f"backend/{plain}", name=f"/{plain}")

    def _of_record(
        self,
        record: Record,
        name: str,
        options: BackendOptions,
        owner: str,
        of_section: Callable[[str], BackendOptions] | None = None,
    ) -> Backend | None:
        target = record.get("host")
        if target is not None:
            endpoint = self.endpoint(target, options, infers=True)
            shown = name or endpoint.address
            host = self._hosts.get((shown, endpoint.key))
            if host is None:
                host = HostBackend(key=f"host/{shown}#{endpoint.key}", name=shown, endpoint=endpoint)
                self._hosts[shown, endpoint.key] = host
            return host
        service = record.get("service")
        if service is not None:
            return self.service(service["name"], service["port"], options)
        if record.get("internal") is not None:
            return self.internal.backend(record, options, name)
        options.refuse_proxy_protocol(self.context)
        if record.get("dynamic") is not None:
            from headgate.config import dynamic_backends

            return dynamic_backends.parse(self, record, options)
        ai = record.get("ai")
        if ai is not None:
            from headgate.config import ai_backends  # as other kinds of backends, with the first one

            return ai_backends.parse(self, ai, name or owner, options, of_section)
        if record.get("llm") is not None:
            from headgate.config.llm_models import Models

            return Models(self.context, self, record["llm"], name or owner).router(options)
        aws = record.get("aws")
        if aws is not None:
            from headgate.config import agent_runtime

            return agent_runtime.parse(self, aws, name, options)
        mcp = record.get("mcp")
        return self.mcp(mcp, name or owner, options, of_section) if mcp is not None else None

    def place_of(self, target: ConnectTarget, policies: Record | None) -> tuple[Endpoint, BackendPolicies]:
        """Return the endpoint of calls that a policy itself makes, and the policies of these calls."""
        options = backend_options(self.context, policies)
        return replace(self.endpoint(target, options), backs_off=True), options.policies()

    def copies_to(self, target: Record) -> CopyTarget | None:
        """Return the endpoint of a mirror target. Returns None after reporting an error."""
        from headgate.config import copy_targets  # with the first mirror

        return copy_targets.parse(self, target)

    def service(self, name: str, port: int, options: BackendOptions, *, tcp: bool = False) -> Backend:
        """Return the backend of a port of the service `<namespace>/<hostname>`. tcp: no HTTP is spoken with it."""
        service = self.services.named(name)
        shown = f"service/{name}:{port}"
        if service is None:
            self.context.warnings.append(f"service {name!r} does not exist: requests to it get 500")
            return MissingBackend(key=shown, name=shown, reason="service not found")
        if options.tls is not None and options.tls.hostname is None:
            options = replace(options, tls=replace(options.tls, hostname=service.hostname))
        if options.tls is not None and service.alt_names and not (
            options.tls.subject_alt_names or options.tls.insecure or options.tls.insecure_host
        ):
            options = replace(options, tls=replace(options.tls, subject_alt_names=service.alt_names))
        protocol = dict(service.app_protocols).get(port)
        if options.http2 is None and protocol is not None and not tcp:
            options = replace(options, http2=APP_PROTOCOLS.get(protocol.lower()))
        endpoints = []
        for workload, host, target in self.services.endpoints(service, port):
            place = self.endpoint(ConnectTarget(host, target), options, infers=not tcp, tcp=tcp)
            if workload.hbone:
                from headgate.config.mesh import tunnelled  # few need it

                place = tunnelled(self.context, workload, place, options)
            endpoints.append(ServiceEndpoint(key=workload.uid, endpoint=place, capacity=workload.capacity))
        return ServiceBackend(
            key=f"{shown}#{digest(*(one.endpoint.pool_key for one in endpoints))}",
            name=shown,
            owner=f"service/{name}",
            hostname=service.hostname,
            port=port,
            endpoints=tuple(endpoints),
            a2a=protocol is not None and protocol.lower() in A2A_PROTOCOLS and not tcp,
        )

    def mcp(
        self,
        record: Record,
        name: str,
        options: BackendOptions,
        of_section: Callable[[str], BackendOptions] | None = None,
    ) -> McpBackend | None:
        """Return the MCP backend of a record with `targets`. Returns None if a target is not supported or invalid."""
        records = record.records("targets")
        names = [one["name"] for one in records]
        for one in records:
            if names.count(one["name"]) > 1:
                self.context.fault(Problem.CONFLICT, one, "name", f"target {one['name']!r} is defined twice")
        from headgate.config.mcp_targets import McpTargets  # as other kinds of backends, with the first one

        reader = McpTargets(self.context, self)
        targets = [reader.target(one, of_section(one["name"]) if of_section else options) for one in records]
        found = tuple(target for target in targets if target is not None)
        reader.tell_hidden(record, options.mcp_rules, found)
        if not found or len(found) < len(targets):
            return None
        prefix: Any = record.get("prefixMode") or "conditional"
        failure: Any = record.get("failureMode") or "failClosed"
        return McpBackend(
            key=f"mcp/{name}/{digest(*(target.key for target in found), prefix)}",
            name=name,
            targets=found,
            prefix_mode=prefix,
            failure_mode=failure,
            rules=options.mcp_rules,
            stateless=record.get("statefulMode") == "stateless",
            local_only=record.get("dnsRebindingProtection", False),
            guardrails=self._guardrails(options.guardrails or ()),
        )

    def _guardrails(self, drafts: tuple[Draft, ...]) -> tuple[GuardrailProcessor, ...]:
        """Return the processors with their servers. Each error is reported once."""
        found = []
        for draft in drafts:
            key = id(draft.record)
            if key not in self._processors:
                service, notes = self.context.noted(self.remote_service, draft.record)
                made = None
                if service is not None:
                    timeout_ms = service.policies.request_timeout_ms or DEFAULT_TIMEOUT_MS
                    made = replace(draft.processor, service=service, timeout_ms=timeout_ms)
                self._processors[key] = (draft, made, notes)
            _, processor, notes = self._processors[key]
            self.context.notes.add(notes)
            if processor is not None:
                found.append(processor)
        return tuple(found)

    def remote_service(self, record: Record, *, grpc: bool = True) -> RemoteService | None:
        """Return the service that a record names. Returns None after reporting an error."""
        from headgate.config import remote_services  # with the first one

        return remote_services.parse(self, record, grpc=grpc)

    def tell_unused(self, record: Record, options: BackendOptions) -> None:
        """Warn of policies of a backend or service that are for requests of clients, and not for calls of a policy."""
        names = options.unused_in_calls()
        if names:
            self.context.warnings.append(f"{record.path}: {', '.join(names)} do not apply to the calls of a policy")


def _suited(inherited: Inherited, record: Record) -> Inherited:
    """Return what the levels above say of a backend of this kind."""
    return inherited if record.get("mcp") is None else inherited.of_streams()


def _policies_outside(backend: Backend, options: BackendOptions) -> BackendPolicies:
    """Return the policies that apply in front of a backend. LLM providers apply all of theirs themselves, MCP targets
    most."""
    if isinstance(backend, AiBackend | LlmRouter):
        return NO_BACKEND_POLICIES
    return of_whole(options) if isinstance(backend, McpBackend) else options.policies()
