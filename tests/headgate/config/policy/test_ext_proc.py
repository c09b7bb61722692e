"""`extProc`: what is read, what is refused, and what the configuration dump shows."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.config.load import LoadErrors, TextSource, load
from headgate.config.policy.ext_proc import dump
from headgate.ir.policy.ext_proc import ExtProc

ROUTE = "gateways: {default: {port: 1}}\nroutes: [{policies: {extProc: %s}, backends: [{host: 'b:1'}]}]\n"


def entries(policy: str) -> tuple[ExtProc, ...]:
    loaded = load(TextSource(ROUTE % policy, "c"), environ={})
    [listener] = loaded.gateway.binds[0].listeners
    found = listener.routes[0].policies.ext_proc
    assert found is not None
    return found


def test_defaults() -> None:
    [found] = entries("{host: 'a:1'}")
    assert (found.fail_open, found.condition, found.metadata) == (False, None, ())
    assert (found.options.request.headers, found.options.request.body, found.options.request.trailers) == (True, "fullDuplexStreamed", True)
    assert found.options.response == found.options.request
    assert not found.options.override


def test_what_is_read_is_shown() -> None:
    options = {
        "requestHeaderMode": "skip", "requestBodyMode": "buffered", "requestTrailerMode": "skip", "responseHeaderMode": "send",
        "responseBodyMode": "none", "responseTrailerMode": "send", "allowModeOverride": True,
    }  # fmt: skip
    shown = ", ".join(f"{name}: {str(value).lower() if value is True else value}" for name, value in options.items())
    found = entries(
        "{host: 'a:1', failureMode: failOpen, metadataContext: {ns: {a: request.path}}, requestAttributes: {b: request.method}, "
        f"responseAttributes: {{c: response.code}}, processingOptions: {{{shown}}}, policies: {{http: {{requestTimeout: 300ms}}}}}}"
    )
    assert (found[0].fail_open, found[0].timeout_ms) == (True, 300)
    told: dict[str, Any] = dump(found)
    assert told["processingOptions"] == options
    assert told["failureMode"] == "failOpen"
    assert told["metadataContext"] == {"ns": {"a": "request.path"}}
    assert (told["requestAttributes"], told["responseAttributes"]) == ({"b": "request.method"}, {"c": "response.code"})


def test_conditions() -> None:
    found = entries("{conditional: [{condition: \"request.path == '/a'\", host: 'a:1'}, {host: 'c:1'}]}")
    assert [one.condition for one in found] == ["request.path == '/a'", None]
    assert len(dump(found)["conditional"]) == 2


@pytest.mark.parametrize(("policy", "message"), [
    ("{host: 'a:1', processingOptions: {requestBodyMode: streamed}}", "requestBodyMode"),
    ("{host: 'a:1', failureMode: maybe}", "failureMode"),
    ("{host: 'a:1', requestAttributes: {a: 'response.code'}}", "requestAttributes"),
    ("{host: 'a:1', responseAttributes: {a: '1 +'}}", "responseAttributes"),
    ("{host: 'a:1', metadataContext: {ns: {a: nobody}}}", "metadataContext"),
    ("{}", "extProc"),
])  # fmt: skip
def test_what_is_refused(policy: str, message: str) -> None:
    with pytest.raises(LoadErrors, match=message):
        entries(policy)
