"""`extAuthz`: what is refused, and what is warned of."""

from __future__ import annotations

import pytest

from headgate.config.load import Loaded, LoadErrors, TextSource, load


def loaded(policy: str) -> Loaded:
    text = "gateways: {default: {port: 1}}\nroutes: [{policies: {extAuthz: {host: 'a:1', %s}}, backends: [{host: 'b:1'}]}]\n"
    return load(TextSource(text % policy, "c"), environ={})


def test_pseudo_headers_go_to_services_over_grpc_only() -> None:
    (warning,) = loaded("protocol: {http: {}}, includeRequestHeaders: [':path', cookie, ':method']").warnings
    assert warning == (
        "routes[0].policies.extAuthz: :path, :method of includeRequestHeaders: "
        "pseudo-headers are not sent to an HTTP service"
    )
    assert loaded("protocol: {http: {}}, includeRequestHeaders: [cookie]").warnings == ()
    assert loaded("includeRequestHeaders: [':path']").warnings == ()


def test_a_body_of_nothing_is_refused() -> None:
    with pytest.raises(LoadErrors, match=r"includeRequestBody.maxRequestBytes: at least 1"):
        loaded("includeRequestBody: {maxRequestBytes: 0}")
    assert loaded("includeRequestBody: {maxRequestBytes: 1}").gateway.binds
