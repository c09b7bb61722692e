"""Certificates and keys are checked when the configuration is loaded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headgate.ir.backend import HostBackend
from headgate.ir.gateway import Gateway


def listener(cert: Path | str, key: Path | str) -> str:
    return f"gateways: {{g: {{port: 1, tls: {{cert: '{cert}', key: '{key}'}}}}}}"


def test_a_key_of_another_certificate_is_refused(faults: Callable[..., list[str]], certificates: Any) -> None:
    folder = certificates.folder
    assert faults(listener(folder / "a.crt", folder / "b.key")) == [
        "gateways.g.tls.key: the key does not belong to the first certificate of 'cert' (1)"
    ]


@pytest.mark.parametrize(
    "content", [b"", b"text", b"-----BEGIN PRIVATE KEY-----\ncanary\n-----END PRIVATE KEY-----"]
)
def test_unreadable_material_is_refused_without_being_quoted(
    content: bytes, faults: Callable[..., list[str]], certificates: Any, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.pem"
    bad.write_bytes(content)
    folder = certificates.folder
    (key,) = faults(listener(folder / "a.crt", bad))
    assert key == "gateways.g.tls.key: the file holds no readable, unencrypted PEM private key (1)"
    (cert,) = faults(listener(bad, folder / "a.key"))
    assert cert == "gateways.g.tls.cert: the file holds no readable PEM certificate (1)"


def test_a_file_that_is_too_large_is_refused(faults: Callable[..., list[str]], tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.write_bytes(b"x" * (1024 * 1024 + 1))
    assert "is larger than 1048576 bytes" in faults(listener(large, large))[0]


@pytest.mark.parametrize(
    ("tls", "fault"),
    [
        ("{}", "gateways.g.tls: tls needs 'cert' and 'key' (1)"),
        ("{cert: a}", "gateways.g.tls: tls needs 'key' beside 'cert' (1)"),
        ("{key: a}", "gateways.g.tls: tls needs 'cert' beside 'key' (1)"),
        ("{cert: '', key: ''}", "gateways.g.tls.cert: not a file name (1)"),
    ],
)
def test_both_files_are_needed(tls: str, fault: str, faults: Callable[..., list[str]]) -> None:
    assert fault in faults(f"gateways: {{g: {{port: 1, tls: {tls}}}}}")


def backend(tls: str) -> str:
    policies = f"{{backendTLS: {tls}}}"
    return f"gateways: {{default: {{port: 1}}}}\nroutes: [{{backends: [{{host: 'h:443', policies: {policies}}}]}}]"


def test_backend_tls_holds_root_and_client_certificate(
    loaded: Callable[..., Gateway], certificates: Any
) -> None:
    folder = certificates.folder
    text = backend(
        f"{{root: {folder}/root.pem, cert: {folder}/a.crt, key: {folder}/a.key, hostname: 'A.test'}}"
    )
    found = loaded(text).binds[0].listeners[0].routes[0].backends[0].backend
    assert isinstance(found, HostBackend)
    tls = found.endpoint.tls
    assert tls is not None
    assert tls.root_pem == (folder / "root.pem").read_bytes()
    assert tls.hostname == "a.test"
    assert tls.client is not None
    assert tls.client.key.secret.reveal_bytes() == (folder / "a.key").read_bytes()


@pytest.mark.parametrize(
    ("tls", "fault"),
    [
        (
            "{alpn: [h3]}",
            "not supported yet: routes[0].backends[0].policies.backendTLS.alpn other than h2 and http/1.1 (2)",
        ),
        ("{hostname: 'a b'}", "routes[0].backends[0].policies.backendTLS.hostname: not a host (2)"),
        ("{root: none.pem}", "cannot read 'none.pem'"),
        (
            "{subjectAltNames: [a]}",
            "not supported yet: routes[0].backends[0].policies.backendTLS.subjectAltNames (2)",
        ),
    ],
)
def test_backend_tls_that_cannot_work_is_refused(
    tls: str, fault: str, faults: Callable[..., list[str]]
) -> None:
    assert any(fault in line for line in faults(backend(tls)))


@pytest.mark.parametrize(
    ("settings", "common", "fault"),
    [
        ("minTLSVersion: TLS_V1_1", "", "gateways.g.tls.minTLSVersion: unsupported TLS version TLS_V1_1"),
        ("", "minVersion: TLS_V1_0", "frontendPolicies.tls.minVersion: unsupported TLS version TLS_V1_0"),
        ("maxTlsVersion: TLS_V1_2", "minVersion: TLS_V1_3", "no TLS version is left"),
        ("minTlsVersion: TLS_V1_2, minTLSVersion: TLS_V1_2", "", "exclude each other"),
    ],
)
def test_versions_that_leave_nothing_are_refused(
    faults: Callable[..., list[str]], certificates: Any, settings: str, common: str, fault: str
) -> None:
    folder = certificates.folder
    text = listener(folder / "a.crt", folder / "a.key").replace("}}}", f", {settings}}}}}}}" if settings else "}}}")
    assert fault in faults(f"{text}\nfrontendPolicies: {{tls: {{{common}}}}}")[0]


def test_listeners_of_a_port_have_the_same_versions(faults: Callable[..., list[str]], certificates: Any) -> None:
    pair = f"cert: '{certificates.folder}/a.crt', key: '{certificates.folder}/a.key'"
    text = (
        f"gateways: {{g: {{port: 1, listeners: [{{hostname: a.test, tls: {{{pair}}}}}, "
        f"{{hostname: b.test, tls: {{{pair}, minTLSVersion: TLS_V1_3}}}}]}}}}"
    )
    assert "gateway listeners on port 1 cannot differ in their TLS versions" in faults(text)[0]
