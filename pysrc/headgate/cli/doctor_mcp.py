"""`gwctl doctor mcp`: an MCP server from its first answer to its list of tools, through OAuth where it wants that."""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import urlsplit

from headgate.cli.doctor_auth import AuthOptions, examine
from headgate.cli.doctor_calls import Answered, Examination, StepFailed, call, is_form

CLIENT: Final = {"name": "gwctl doctor", "version": "1"}
VERSION: Final = "2025-06-18"
METADATA_CHANGE: Final = (
    "serve /.well-known/oauth-protected-resource, as mcpAuthentication does where its routes get that path; if the "
    "server takes a key and no OAuth, name the variable that has it with --token-env NAME"
)
METADATA: Final = re.compile(r'resource_metadata="([^"]+)"')
REASON: Final = re.compile(r'error_description="([^"]*)"')
# Of tools that are named.
MOST_NAMES: Final = 20
OK, UNAUTHORIZED, FORBIDDEN, NOT_FOUND, TOO_MANY = 200, 401, 403, 404, 429
NO_SESSION: Final = "have everything between here and the server pass the header mcp-session-id in both directions"


def examine_mcp(url: str, options: AuthOptions, found: Examination) -> None:
    """Walk through a server; stop at the first step that fails."""
    if not is_form(url):
        return found.fail(
            "initialize",
            StepFailed(f"{url!r} is not a URL", "give the URL that MCP clients use, such as https://host/mcp"),
        )
    try:
        session = _Session(url, options, found)
        if session.open():
            session.tools()
    except StepFailed as error:
        found.fail("first call" if session.began else "initialize", error)
    return None


def names_of(tools: list[Any]) -> str:
    """Return the names of the first tools; a name is the server's, and comes without what a terminal would obey."""
    names = [str(tool.get("name")) for tool in tools[:MOST_NAMES] if isinstance(tool, dict)]
    more = [f"and {len(tools) - MOST_NAMES} more"] if len(tools) > MOST_NAMES else []
    return ", ".join([name if name.isprintable() else ascii(name) for name in names] + more)


def _is_answer(message: Any) -> bool:
    """Tell whether a message answers a request: a server may say other things before."""
    return isinstance(message, dict) and ("result" in message or "error" in message)


class _Session:
    def __init__(self, url: str, options: AuthOptions, found: Examination) -> None:
        self.url, self.options, self.found = url, options, found
        self.began = False
        self._fields: dict[str, str] = {}
        if options.token is not None:
            self._fields["authorization"] = f"Bearer {options.token}"

    def _post(self, message: dict[str, Any]) -> Answered:
        return call("POST", self.url, {"jsonrpc": "2.0", **message}, self._fields, authority=self.options.authority,
                    is_last=_is_answer)  # fmt: skip

    def _initialize(self) -> Answered:
        return self._post(
            {
                "id": 1, "method": "initialize",
                "params": {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": CLIENT},
            }
        )  # fmt: skip

    def open(self) -> bool:
        """Begin a session; False where OAuth has told what to change."""
        answer = self._initialize()
        if answer.status == UNAUTHORIZED:
            if not self._authorize(answer):
                return False
            answer = self._initialize()
            if answer.status == UNAUTHORIZED:
                told = REASON.search(answer.fields.get("www-authenticate", ""))
                reason = f": {told[1]}" if told is not None else ""
                change = "compare its issuer, audiences and keys with the token (jwt.error in its log says more)"
                raise StepFailed(f"the server refuses the token{reason}", change)
        result = self._result(answer)
        self.began = True
        server = result.get("serverInfo") or {}
        self.found.good(
            "initialize",
            f"{server.get('name', 'a server')} {server.get('version', '')}, protocol {result.get('protocolVersion')}",
        )
        if "mcp-session-id" in answer.fields:
            self._fields["mcp-session-id"] = answer.fields["mcp-session-id"]
        self._fields["mcp-protocol-version"] = str(result.get("protocolVersion"))
        return True

    def _result(self, answer: Answered) -> dict[str, Any]:
        document = answer.document
        if isinstance(document, dict) and isinstance(document.get("error"), dict):
            error = document["error"]
            if self._lost_session(answer):
                raise StepFailed(*self._no_answer(answer))
            raise StepFailed(
                f"the server answers with error {error.get('code')}: {answer.quoted}", "look at the log of the server"
            )
        if answer.status == OK and isinstance(document, dict) and isinstance(document.get("result"), dict):
            found: dict[str, Any] = document["result"]
            return found
        raise StepFailed(*self._no_answer(answer))

    def _no_answer(self, answer: Answered) -> tuple[str, str]:
        """Return what is wrong with an answer that is none of MCP, and what to change."""
        status, path = answer.status, urlsplit(self.url).path or "/"
        if self._lost_session(answer):
            return f"the server wants a session ID, and has given none with initialize: {answer.quoted}", NO_SESSION
        if status in (NOT_FOUND, 405):
            if self._is_old():
                return (
                    "the server speaks the transport HTTP with SSE of 2024 only",
                    "write sse: instead of mcp: for this target",
                )
            other = "/mcp" if path != "/mcp" else "/"
            return f"there is no MCP server at {path} (status {status})", f"check the path: most servers serve {other}"
        if status in (301, 302, 307, 308):
            return (
                f"the server redirects clients to {answer.fields.get('location')}",
                f"write {answer.fields.get('location')} instead",
            )
        if status == FORBIDDEN:
            return (
                f"the server refuses this client: {answer.quoted}",
                "look at rules about origins, hosts and addresses in front of the server",
            )
        if status in (406, 415):
            return (
                f"the server refuses the media types of MCP (status {status})",
                "check that nothing in between changes accept or content-type",
            )
        if answer.is_page and status < 500:
            return (
                f"{answer.quoted} answers, and no MCP server (status {status})",
                "give the URL of the MCP endpoint, not that of the site, and look for a proxy or a login in between",
            )
        if status == UNAUTHORIZED:
            return (
                f"the server takes initialize, and refuses what follows: {answer.quoted}",
                "have the server, and what stands in front of it, treat all requests of a session alike",
            )
        if status == TOO_MANY:
            return f"the server takes no more requests now: {answer.quoted}", "wait, or raise its limits"
        if status >= 500:
            return f"the server fails with status {status}: {answer.quoted}", "look at the log of the server"
        return (
            f"the response is not MCP (status {status}, {answer.kind or 'no type'})",
            "check that the URL is that of an MCP endpoint",
        )

    def _lost_session(self, answer: Answered) -> bool:
        """Tell whether the server misses a session ID that has not come back with initialize."""
        return self.began and "mcp-session-id" not in self._fields and "session" in answer.quoted.lower()

    def _is_old(self) -> bool:
        try:
            answer = call("GET", self.url, fields=self._fields, authority=self.options.authority)
        except StepFailed:
            return False
        return answer.status == OK and answer.kind == "text/event-stream" and b"event: endpoint" in answer.body

    # -- OAuth ---------------------------------------------------------------------------------------------------------
    def _authorize(self, answer: Answered) -> bool:
        """Walk through the server's OAuth; tell whether there is a token now."""
        self.found.good("challenge", "the server requires a token")
        try:
            issuer = self._resource(answer)
        except StepFailed as error:
            self.found.fail("resource", error)
            return False
        token = examine(issuer, self.options, self.found)
        if token is None:
            if not self.found.failed:
                self.found.skip(
                    "first call", "it takes a token: --client-id with --client-secret-env NAME, or --token-env NAME"
                )
            return False
        self._fields["authorization"] = f"Bearer {token}"
        return True

    def _resource(self, answer: Answered) -> str:
        """Return the issuer that the resource's metadata name (RFC 9728)."""
        challenge = answer.fields.get("www-authenticate", "")
        named = METADATA.search(challenge)
        parts = urlsplit(self.url)
        path = parts.path.rstrip("/")
        url = (
            named[1]
            if named is not None
            else f"{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource{path}"
        )
        found = call("GET", url, authority=self.options.authority)
        document = found.document
        if found.status != OK or not isinstance(document, dict):
            named_by = "there is no metadata at {}, which its 401 names" if named is not None else (
                "its 401 names no metadata, and there is none at {}"
            )  # fmt: skip
            raise StepFailed(f"{named_by.format(url)} (status {found.status})", METADATA_CHANGE)
        resource = document.get("resource")
        if not isinstance(resource, str) or not self.url.startswith(resource.rstrip("/")):
            change = f"set resourceMetadata.resource to {parts.scheme}://{parts.netloc}{path}, the URL that clients use"
            raise StepFailed(
                f"the metadata is for {resource!r}, not for {self.url}, so clients refuse it", change
            )
        servers = document.get("authorization_servers")
        if not isinstance(servers, list) or not servers or not isinstance(servers[0], str):
            raise StepFailed("the metadata contains no authorization server", "set issuer in mcpAuthentication")
        self.found.good("resource", f"{url} names {servers[0]}")
        return servers[0]

    # -- the first call ------------------------------------------------------------------------------------------------
    def tools(self) -> None:
        """List the tools, and end the session."""
        told = self._post({"method": "notifications/initialized"})
        if told.status >= 400:
            raise StepFailed(*self._no_answer(told))
        result = self._result(self._post({"id": 2, "method": "tools/list"}))
        tools = result.get("tools")
        if not isinstance(tools, list):
            raise StepFailed("tools/list has a result without tools", "look at the log of the server")
        if "mcp-session-id" in self._fields:
            call("DELETE", self.url, fields=self._fields, authority=self.options.authority)
        self.found.good("first call", f"{len(tools)} tools: {names_of(tools) or 'mcpAuthorization may hide them'}")
