"""Certificates and keys are checked when the configuration is loaded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from headgate.config.dump import Runtime, dump
from headgate.config.load import Loaded, TextSource, load
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
    assert key == "gateways.g.tls.key: no readable, unencrypted PEM private key (1)"
    (cert,) = faults(listener(bad, folder / "a.key"))
    assert cert == "gateways.g.tls.cert: no readable PEM certificate (1)"


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
            "routes[0].backends[0].policies.backendTLS.alpn: requests are sent in h2 and http/1.1",
        ),
        ("{hostname: 'a b'}", "routes[0].backends[0].policies.backendTLS.hostname: not a host (2)"),
        ("{root: none.pem}", "cannot read 'none.pem'"),
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


def pair(certificates: Any) -> str:
    return f"cert: '{certificates.folder}/a.crt', key: '{certificates.folder}/a.key'"


SETTINGS_FAULTS = {
    "an unknown suite": (
        "cipherSuites: [TLS_RSA_WITH_RC4_128_SHA]", "",
        "gateways.g.tls.cipherSuites: unknown cipher suite 'TLS_RSA_WITH_RC4_128_SHA'; known: TLS13_AES_256_GCM_SHA384",
    ),
    "suites of another version": (
        "cipherSuites: [TLS13_AES_128_GCM_SHA256], maxTLSVersion: TLS_V1_2", "",
        "gateways.g.tls.cipherSuites: no suite is left for the TLS versions TLS_V1_2 to TLS_V1_2",
    ),
    "a common suite that is unknown": ("", "cipherSuites: [x]", "frontendPolicies.tls.cipherSuites: unknown cipher suite 'x'"),
    "an unknown group": (
        "keyExchangeGroups: [P-521]", "",
        "gateways.g.tls.keyExchangeGroups: unknown key exchange group 'P-521'; known: X25519, P-256, P-384, X25519_MLKEM768",
    ),
    "a protocol that nobody speaks": ("", "alpn: [[115, 112, 100, 121]]", "frontendPolicies.tls.alpn: the gateway does not speak 'spdy'"),
    "a root that is none": ("root: 'FOLDER/a.key'", "", "gateways.g.tls.root: no readable PEM certificate"),
    "a root that is not there": ("root: 'FOLDER/none.pem'", "", "gateways.g.tls.root: cannot read"),
}  # fmt: skip


@pytest.mark.parametrize("case", SETTINGS_FAULTS)
def test_settings_that_cannot_work(case: str, faults: Callable[..., list[str]], certificates: Any) -> None:
    own, common, fault = SETTINGS_FAULTS[case]
    tls = f"{pair(certificates)}, {own.replace('FOLDER', str(certificates.folder))}"
    text = f"gateways: {{g: {{port: 1, tls: {{{tls}}}}}}}\nfrontendPolicies: {{tls: {{{common}}}}}"
    assert fault in faults(text)[0]


def test_a_group_that_the_library_does_not_have(
    faults: Callable[..., list[str]], certificates: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import headgate_engine.tls.context as context

    has = context.supports_group
    monkeypatch.setattr(context, "supports_group", lambda name: name != "P-384" and has(name))
    text = f"gateways: {{g: {{port: 1, tls: {{{pair(certificates)}, keyExchangeGroups: [X25519, P-384]}}}}}}"
    (fault,) = faults(text)
    assert fault.startswith("gateways.g.tls.keyExchangeGroups: the loaded OpenSSL 3.")
    assert "has no key exchange group P-384" in fault


def test_settings_of_listeners(loaded: Callable[..., Any], certificates: Any) -> None:
    """A listener's own come first, and listeners of a port may differ in all of them."""
    text = f"""
        gateways:
          g:
            port: 1
            listeners:
            - {{hostname: a.test, tls: {{{pair(certificates)}, root: '{certificates.folder}/root.pem',
                cipherSuites: [ECDHE-RSA-AES256-GCM-SHA384, TLS_AES_128_GCM_SHA256, TLS13_AES_128_GCM_SHA256]}}}}
            - {{hostname: b.test, tls: {{{pair(certificates)}, minTLSVersion: TLS_V1_3, keyExchangeGroups: [P-384]}}}}
        frontendPolicies:
          tls: {{alpn: [[104, 116, 116, 112, 47, 49, 46, 49]], keyExchangeGroups: [P-256, X25519], cipherSuites: [TLS13_AES_256_GCM_SHA384]}}
        """
    one, other = (listener.tls for listener in loaded(text).binds[0].listeners)
    assert one.suites == ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "TLS13_AES_128_GCM_SHA256")
    assert (one.groups, other.groups) == (("P-256", "X25519"), ("P-384",))
    assert other.suites == ("TLS13_AES_256_GCM_SHA384",)
    assert one.alpn == other.alpn == (b"http/1.1",)
    assert one.root_pem == (certificates.folder / "root.pem").read_bytes()
    assert (other.root_pem, other.versions[0], one.versions[0]) == (None, "TLS_V1_3", "TLS_V1_2")
    assert one.key != other.key


BACKEND_FAULTS = {
    "no names": ("subjectAltNames: ['']", "subjectAltNames: 1 to 16 names that are not empty"),
    "too many names": (f"subjectAltNames: [{', '.join('abcdefghijklmnopq')}]", "subjectAltNames: 1 to 16 names"),
    "names that are not checked": ("subjectAltNames: [a], insecureHost: true", "names are not checked with 'insecure' or 'insecureHost'"),
    "an unknown group": ("keyExchangeGroups: [x]", "keyExchangeGroups"),
}


@pytest.mark.parametrize("case", BACKEND_FAULTS)
def test_settings_of_backends_that_cannot_work(case: str, faults: Callable[..., list[str]]) -> None:
    tls, fault = BACKEND_FAULTS[case]
    assert any(fault in line for line in faults(backend(f"{{{tls}}}")))


def indented(text: str) -> str:
    return "".join(f"          {line}\n" for line in text.splitlines())


def inline(cert: str, key: str) -> str:
    return f"gateways:\n  g:\n    port: 1\n    tls:\n      cert: |\n{indented(cert)}      key: |\n{indented(key)}"


def test_a_pair_in_the_configuration(loaded: Callable[..., Gateway], certificates: Any) -> None:
    cert, key = ((certificates.folder / name).read_text() for name in ("a.crt", "a.key"))
    found = loaded(inline(cert, key)).binds[0].listeners[0].tls
    assert found is not None
    assert (found.cert_file, found.key_file, found.cert_pem) == (None, None, cert.encode())
    private, written = (load_pem_private_key(one, None) for one in (key.encode(), found.key_pem.reveal_bytes()))
    assert private.private_numbers() == written.private_numbers()
    assert loaded(inline(cert, key).replace("key: |\n", "key: >-\n")).binds[0].listeners[0].tls == found, "folded into one line"
    assert key.splitlines()[1] not in repr(found)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda key: "\n".join(key.splitlines()[1:]),
        lambda key: "\n".join(key.splitlines()[:-1]),
        lambda key: key.replace("A", "B"),
        lambda key: key.replace("\n", "")[:-40],
        lambda key: "".join(key.splitlines()[1:-1]),
    ],
    ids=["no first line", "no last line", "other content", "one line", "base64 alone"],
)
def test_a_spoilt_key_is_not_quoted(spoil: Callable[[str], str], faults: Callable[..., list[str]], certificates: Any) -> None:
    cert, key = ((certificates.folder / name).read_text() for name in ("a.crt", "a.key"))
    text = inline(cert, spoil(key)) if "\n" in spoil(key) else inline(cert, "x").replace("|\n          x", f"'{spoil(key)}'")
    [fault] = faults(text)
    assert fault.startswith("gateways.g.tls.key: ")
    assert not any(line[:20] in fault for line in key.splitlines()[1:-1])


@pytest.mark.parametrize(
    ("said", "strangers"),
    [("allowInsecureFallback", True), ("AllowInsecureFallback", True), ("AllowValidOnly", False), (None, False)],
)
def test_strangers_among_clients(said: str | None, strangers: bool, certificates: Any) -> None:
    def loaded(word: str) -> Loaded:
        root = f"root: '{certificates.folder}/root.pem'"
        return load(TextSource(f"gateways: {{g: {{port: 1, tls: {{{pair(certificates)}, {root}{word}}}}}}}", "c.yaml"), environ={})

    found, plain = loaded("" if said is None else f", clientValidation: {said}"), loaded("")
    warning = (
        "gateways.g.tls.clientValidation: clients are admitted without a valid certificate; nothing of an invalid one is believed"
    )
    assert found.warnings == ((warning,) if strangers else ())
    tls, other = (one.gateway.binds[0].listeners[0].tls for one in (found, plain))
    assert tls is not None
    assert other is not None
    assert tls.strangers is strangers
    assert (tls.key != other.key) is strangers, "a listener of other settings has a context of its own"
    (listener,) = dump(found.gateway, Runtime(generation=1, workers=1, started_unix_s=1, build={}))["binds"][0]["listeners"].values()
    assert listener["protocol"]["HTTPS"].get("clientValidation") == ("allowInsecureFallback" if strangers else None)


@pytest.mark.parametrize("word", ["allowInsecureFallback", "allowValidOnly"])
def test_strangers_need_somebody_who_is_known(word: str, faults: Callable[..., list[str]], certificates: Any) -> None:
    message = "gateways.g.tls.clientValidation: only with 'root', which says whose certificates are valid (1)"
    assert faults(f"gateways: {{g: {{port: 1, tls: {{{pair(certificates)}, clientValidation: {word}}}}}}}") == [message]


def test_the_mesh_has_no_strangers(faults: Callable[..., list[str]], certificates: Any) -> None:
    tls = f"{{{pair(certificates)}, root: '{certificates.folder}/root.pem', clientValidation: allowInsecureFallback}}"
    text = f"binds: [{{port: 1, tunnelProtocol: hboneGateway, listeners: [{{name: m, protocol: HBONE, tls: {tls}}}]}}]"
    assert faults(text) == [
        "binds[0].listeners[0].tls: protocol HBONE requires client certificates (1)"
    ]


def more(folder: Path, entries: str, own: str = "") -> str:
    pair = f"cert: '{folder / 'a.crt'}', key: '{folder / 'a.key'}'"
    return f"gateways: {{g: {{port: 1, tls: {{{pair}, moreCertificates: {entries}{own}}}}}}}"


def test_further_certificates_of_a_listener(loaded: Callable[..., Gateway], certificates: Any) -> None:
    folder = certificates.folder
    found = loaded(more(folder, f"[{{cert: '{folder / 'b.crt'}', key: '{folder / 'b.key'}'}}]")).binds[0].listeners[0].tls
    assert found is not None
    (other,) = found.others
    assert (other.cert_file, other.cert_pem) == (str(folder / "b.crt"), (folder / "b.crt").read_bytes())
    alone = loaded(listener(folder / "a.crt", folder / "a.key")).binds[0].listeners[0].tls
    assert alone is not None
    assert alone.key != found.key


@pytest.mark.parametrize(
    ("entry", "own", "fault"),
    [
        ("cert: a.crt, key: b.key", "", "does not belong to the first certificate"),
        ("cert: b.crt, key: b.key", ", mode: dynamicCa", "only beside 'cert' and 'key' of the mode static"),
    ],
)
def test_further_certificates_that_cannot_be(
    entry: str, own: str, fault: str, faults: Callable[..., list[str]], certificates: Any
) -> None:
    folder = certificates.folder
    for name in ("a.crt", "b.crt", "b.key"):
        entry = entry.replace(name, f"'{folder / name}'")
    assert any(fault in one for one in faults(more(folder, f"[{{{entry}}}]", own)))
