"""MCP targets: processes, remote servers, and HTTP services whose OpenAPI document makes them tools."""

from __future__ import annotations

import json
import re
from typing import Final, Protocol

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.mcp_rules import hidden
from headgate.config.policy import document_source
from headgate.config.policy_values import BackendOptions, Named, backend_options
from headgate.document import fields
from headgate.document.fields import ConnectTarget
from headgate.document.lazy_dataclass import replace
from headgate.document.nodes import child
from headgate.errors import Problem
from headgate.ir.digest import digest
from headgate.ir.endpoint import Endpoint
from headgate.ir.mcp import McpTarget, OpenApiTarget, SseTarget, StdioTarget, StreamableHttpTarget
from headgate.ir.policy.authorization import Authorization
from headgate.ir.policy.document_source import DocumentSource

TARGET_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
DEFAULT_PATHS: Final = {"mcp": "/mcp", "sse": "/sse", "openapi": "/"}
MAX_NAME: Final = 253


class AddressResolver(Protocol):
    """Where addresses become endpoints, and names addresses."""

    def named(self, name: str) -> Named | None: ...
    def endpoint(
        self, target: ConnectTarget, options: BackendOptions, *, discovered: bool = False
    ) -> Endpoint: ...


class McpTargets:
    """Makes targets out of the records of `targets[]`."""

    def __init__(self, context: Context, places: AddressResolver) -> None:
        self._context = context
        self._places = places

    def tell_hidden(self, record: Record, rules: Authorization | None, targets: tuple[McpTarget, ...]) -> None:
        """Warn of rules about tools that hide prompts and resources, where a target may have some."""
        more = any(not isinstance(target, OpenApiTarget) for target in targets)
        told = hidden(rules) if rules is not None and more else None
        if told is not None:
            self._context.warnings.append(f"{record.path}: mcpAuthorization: {told}")

    def target(self, record: Record, options: BackendOptions) -> McpTarget | None:
        """Return the target of a record under the `options` of its backend; None when it is at fault."""
        name = record["name"]
        if len(name) > MAX_NAME or not TARGET_NAME.fullmatch(name):
            message = (
                "a target name has lower-case letters, digits, '-' and '.', and a letter or digit at both ends"
            )
            self._context.fault(Problem.VALUE, record, "name", message)
        stdio = record.get("stdio")
        if stdio is not None:
            if record.get("policies") is not None:
                self._context.fault(Problem.CONFLICT, record, "policies", "a stdio target has no policies")
            return self._stdio(name, stdio)
        for kind in DEFAULT_PATHS:
            remote = record.get(kind)
            if remote is not None:
                return self._remote(record, kind, remote, options)
        return None

    def _stdio(self, name: str, record: Record) -> StdioTarget | None:
        cmd = record["cmd"]
        args, env = tuple(record.get("args") or ()), tuple((record.get("env") or {}).items())
        if not cmd or "\0" in "".join((cmd, *args)):
            self._context.fault(Problem.VALUE, record, "cmd", "not a command")
            return None
        for key, value in env:
            if not key or "=" in key or "\0" in key + value.reveal():
                self._context.fault(Problem.VALUE, record, "env", f"{key!r} is not a name of an environment variable")
        clear = record.get("clear_env", False)
        return StdioTarget(
            key=f"stdio/{name}/{digest(cmd, args, env, clear)}",
            name=name,
            cmd=cmd,
            args=args,
            env=env,
            clear_env=clear,
        )

    # -- remote --------------------------------------------------------------------------------------------------------
    def _remote(self, record: Record, kind: str, remote: Record, options: BackendOptions) -> McpTarget | None:
        own = backend_options(self._context, record.get("policies"))
        if remote.get("backend") is not None:
            found = self._by_name(record, kind, remote)
            if found is None:
                return None
            target, path, lent = found
            lent.refuse_proxy_protocol(self._context, "an MCP session can use several connections")
            return self._made(record, kind, (target, path), options.under(lent))
        try:
            place = remote_address(remote["host"], remote.get("port"), remote.get("path"), DEFAULT_PATHS[kind])
        except ValueError as error:
            self._context.fault(Problem.VALUE, remote, "host", str(error))
            return None
        return self._made(record, kind, place, options.under(own))

    def _by_name(self, record: Record, kind: str, remote: Record) -> tuple[ConnectTarget, str, BackendOptions] | None:
        named = remote["backend"].removeprefix("/")
        entry = self._places.named(named)
        path = remote.get("path")
        if record.get("policies") is not None:
            self._context.fault(
                Problem.CONFLICT, record, "policies", "a target with 'backend' cannot have its own policies"
            )
        if entry is None or entry.record.get("host") is None:
            self._context.fault(Problem.REFERENCE, remote, "backend", f"no host backend is named {named!r}")
            return None
        if kind == "openapi":
            path = "/"
        elif path is None:
            path = DEFAULT_PATHS[kind]
        elif not is_path(path):
            self._context.fault(Problem.VALUE, remote, "path", "a path must begin with / and have no spaces")
            return None
        return entry.record["host"], path, entry.options

    def _made(
        self, record: Record, kind: str, place: tuple[ConnectTarget, str], options: BackendOptions
    ) -> McpTarget | None:
        name, (target, path) = record["name"], place
        endpoint = self._places.endpoint(target, options, discovered=True)
        if options.health is not None or options.affinity is not None:
            self._unsupported(record, "health and sessionAffinity of an MCP target, which has one endpoint")
        if any(one.response is not None for one in options.transformations or ()):
            self._unsupported(record, "transformations of the responses of an MCP target, which are streams")
        # What concerns the whole backend is done in front of it; see of_whole().
        policies = replace(options, authorization=None, redirect=None, response_headers=None).policies()
        # Not the endpoint's key: a session lives at the remote server and outlasts a renewed certificate.
        identity = (endpoint.address, endpoint.tls is not None, path)
        if kind == "mcp":
            key = f"http/{name}/{digest(*identity)}"
            return StreamableHttpTarget(key=key, name=name, endpoint=endpoint, path=path, policies=policies)
        if kind == "sse":
            key = f"sse/{name}/{digest(*identity)}"
            return SseTarget(key=key, name=name, endpoint=endpoint, path=path, policies=policies)
        schema = self._schema(record["openapi"])
        if schema is None:
            return None
        key = f"openapi/{name}/{digest(endpoint.address, endpoint.tls is not None, schema.url, schema.document)}"
        return OpenApiTarget(key=key, name=name, endpoint=endpoint, schema=schema, policies=policies)

    def _unsupported(self, record: Record, what: str) -> None:
        self._context.fault(Problem.UNSUPPORTED, record, "policies", f" ({what})")

    def _schema(self, record: Record) -> DocumentSource | None:
        """Return where the document is; one that is at hand is read now, and refused when it cannot be served."""
        value = record["schema"]
        if isinstance(value, dict):
            found: DocumentSource | None = DocumentSource(document=json.dumps(value))
        else:
            found = document_source.parse(self._context, record, "schema")
        if found is None or found.document is None:
            return found
        from headgate.dialect.openapi.document import OpenApiError  # loaded with the first document
        from headgate.dialect.openapi.tools import read_tools

        try:
            api = read_tools(found.document, found.file or "the document")
        except OpenApiError as error:
            where = "" if found.file is None else f"{found.file}: "
            self._context.fault(Problem.VALUE, record, "schema", f"{where}{error}")
            return None
        path = child(record.path, "schema")
        self._context.warnings.extend(f"{path}: {warning}" for warning in api.warnings)
        return found


def is_path(text: str) -> bool:
    """Tell whether a text is the path of a URL, without query."""
    return text.startswith("/") and not any(char in " ?#" or char < " " for char in text)


def remote_address(host: str, port: int | None, path: str | None, default_path: str) -> tuple[ConnectTarget, str]:
    """Return address and path of `host` alone (`h:p` or a URL) or `host`, `port` and `path`; raises
    ValueError.
    """
    if port is not None and path is not None:
        if not is_path(path):
            raise ValueError("a path must begin with / and have no query")
        if "://" in host:
            found = fields.url(host)
            return ConnectTarget(found.host, port, scheme=found.scheme), path
        name, number = fields.host_port(f"{host}:{port}")
        return ConnectTarget(name, number), path
    if "://" in host:
        found = fields.url(host)
        return ConnectTarget(found.host, found.port, scheme=found.scheme), found.path or "/"
    name, number = fields.host_port(host)
    return ConnectTarget(name, number), default_path
