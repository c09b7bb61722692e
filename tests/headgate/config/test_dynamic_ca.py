"""The mode `dynamicCa` of listeners."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trustme

from headgate.config.load import TextSource, load
from headgate.errors import ConfigErrors
from headgate.ir.tls import ServerTls

TTL, CAPACITY = "DYNAMIC_CA_CERT_CACHE_TTL", "DYNAMIC_CA_CERT_CACHE_CAPACITY"


@pytest.fixture
def text(tmp_path: Path) -> str:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    authority.private_key_pem.write_to_path(tmp_path / "ca.key")
    return f"gateways: {{g: {{port: 1, tls: {{mode: dynamicCa, cert: '{tmp_path}/ca.pem', key: '{tmp_path}/ca.key'}}}}}}"


def read(text: str, environ: dict[str, str]) -> ServerTls:
    found = load(TextSource(text), environ=environ).gateway.binds[0].listeners[0].tls
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("environ", "kept_ms", "most"),
    [({}, 300_000, 256), ({TTL: "90"}, 90_000, 256), ({TTL: "1m30s"}, 90_000, 256), ({CAPACITY: "7", TTL: "12h"}, 43_200_000, 7)],
)
def test_bounds(text: str, environ: dict[str, str], kept_ms: int, most: int) -> None:
    found = read(text, environ)
    assert (found.source, found.minted_ms, found.minted_most) == ("dynamicCa", kept_ms, most)
    assert (found.key == read(text, {}).key) == (environ == {}), "its contexts are others"


@pytest.mark.parametrize("environ", [{TTL: "0"}, {TTL: "soon"}, {TTL: "13h"}, {CAPACITY: "0"}, {CAPACITY: "many"}, {CAPACITY: "65537"}])
def test_bounds_that_are_none(text: str, environ: dict[str, str]) -> None:
    with pytest.raises(ConfigErrors) as found:
        read(text, environ)
    [name] = environ
    assert f"environment variable {name}: " in str(found.value)


def test_a_root_is_not_asked_for(text: str, tmp_path: Path, faults: Callable[..., list[str]]) -> None:
    assert faults(text.replace("mode:", f"root: '{tmp_path}/ca.pem', mode:")) == [
        "gateways.g.tls.root: not with the mode dynamicCa, which asks clients for nothing (1)"
    ]


def test_what_is_no_authority_is_refused(faults: Callable[..., list[str]], certificates: Any) -> None:
    folder = certificates.folder
    text = f"gateways: {{g: {{port: 1, tls: {{mode: dynamicCa, cert: '{folder}/a.crt', key: '{folder}/a.key'}}}}}}"
    assert faults(text) == ["gateways.g.tls.cert: the mode dynamicCa needs the certificate of an authority (basic constraints CA) (1)"]
    assert "tls needs 'cert' and 'key'" in faults("gateways: {g: {port: 1, tls: {mode: dynamicCa}}}")[0]


@pytest.mark.parametrize(
    ("suites", "refused"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", True),
        ("ECDHE-RSA-AES128-GCM-SHA256", True),
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", False),
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, TLS13_AES_128_GCM_SHA256", False),
    ],
)
def test_suites_that_no_certificate_of_it_fits(text: str, suites: str, refused: bool) -> None:
    changed = text.replace("mode:", f"cipherSuites: [{suites}], mode:")
    if not refused:
        assert read(changed, {}).suites
        return
    with pytest.raises(ConfigErrors, match="all of these suites want RSA"):
        read(changed, {})
