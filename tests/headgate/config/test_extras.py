"""A configuration that needs a library which is not installed says which extra brings it."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from headgate.config import extras
from headgate.ir.gateway import Gateway

HEAD = "gateways: {default: {port: 1}}\nroutes:\n- backends:\n  - host: h:1\n    policies: {backendAuth: "
MODEL = "gateways: {default: {port: 1}}\nroutes:\n- backends:\n  - ai: {name: a, provider: "
AWS = "needs the library botocore, which is not installed: pip install 'headgate[cloud]'"
GCP = "needs the library google.auth, which is not installed: pip install 'headgate[cloud]'"

CASES = (
    (HEAD + "{aws: {}}}", "backendAuth.aws", AWS),
    (HEAD + "{gcp: {}}}", "backendAuth.gcp", GCP),
    (HEAD + "{aws: {accessKeyId: a, secretAccessKey: b}}}", None, None),
    (HEAD + "{azure: {developerImplicit: {}}}}", None, None),
    (MODEL + "{bedrock: {region: eu-west-1}}}", "ai", AWS),
    (MODEL + "{vertex: {projectId: p, region: r}}}", "ai", GCP),
)


REFUSED = [case for case in CASES if case[1] is not None]
ACCEPTED = [case[0] for case in CASES if case[1] is None]


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation without any extra."""
    monkeypatch.setattr(extras, "installed", lambda _module: False)


@pytest.mark.parametrize(("text", "path", "message"), REFUSED, ids=[text[-40:] for text, _, _ in REFUSED])
def test_a_missing_library_is_named_where_it_is_needed(
    text: str, path: str, message: str, faults: Callable[..., list[str]]
) -> None:
    [line] = faults(text, environ={})
    assert path in line
    assert f": {message} (" in line
    assert line.endswith("5)" if "backendAuth" in text else "4)")


@pytest.mark.parametrize("text", ACCEPTED, ids=[text[-40:] for text in ACCEPTED])
def test_what_needs_no_library_is_accepted(text: str, loaded: Callable[..., Gateway]) -> None:
    assert loaded(text, environ={}).binds


def test_the_one_file_program_says_what_to_install_instead(
    faults: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(extras.ONE_FILE, "/usr/bin/headgate")
    [line] = faults(CASES[1][0], environ={})
    why = "needs the library google.auth, which is not in the one-file program"
    assert f"{why}: install the package instead: pip install 'headgate[cloud]'" in line


def test_keys_of_the_environment_need_no_library(loaded: Callable[..., Gateway]) -> None:
    keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    assert loaded(CASES[0][0], environ=keys).binds


def test_a_library_is_found_without_being_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert extras.installed("json")
    assert not extras.installed("nowhere_at_all.inside")
    assert extras.missing("botocore") is None


ROUTE = "gateways: {default: {port: 1}}\nroutes: [{policies: {%s}, backends: [{host: 'b:1'%s}]}]\n"
PICKER = ", policies: {inferenceRouting: {endpointPicker: {host: 'a:1'}}}"
# Whatever needs a library beyond those of clouds: what the file says, the path of the error, the library, its extra.
NEEDS = (
    (ROUTE % ("extAuthz: {host: 'a:1'}", ""), "extAuthz", "envoy.service.auth", "envoy"),
    (ROUTE % ("extProc: {host: 'a:1'}", ""), "extProc", "envoy.service.ext_proc", "envoy"),
    (ROUTE % ("remoteRateLimit: {host: 'a:1', domain: d, descriptors: [{entries: [{key: k, value: request.path}]}]}", ""),
     "remoteRateLimit", "envoy.service.ratelimit", "envoy"),
    (ROUTE % ("", PICKER), "inferenceRouting", "envoy.service.ext_proc", "envoy"),
    ("frontendPolicies: {networkExtAuthz: {host: 'a:1'}}\n", "networkExtAuthz", "envoy.service.auth", "envoy"),
    ("config: {dns: {servers: [10.0.0.1]}}\n", "config.dns.servers", "pycares", "dns"),
    ("config: {database: {url: 'postgres://h/d'}}\n", "config.database.url", "asyncpg", "postgres"),
    ("config: {sharedState: {redis: {url: 'redis://h'}}}\n", "config.sharedState.redis", "redis", "redis"),
)  # fmt: skip


@pytest.mark.parametrize(("text", "path", "module", "extra"), NEEDS, ids=[case[1] for case in NEEDS])
def test_whatever_a_configuration_needs_is_named_with_its_extra(
    text: str, path: str, module: str, extra: str, faults: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    [line] = faults(text, environ={})
    assert path in line
    assert f": needs the library {module}, which is not installed: pip install 'headgate[{extra}]' (" in line
    monkeypatch.setattr(extras, "installed", lambda _module: True)
    with pytest.raises(AssertionError, match="was accepted"):
        faults(text, environ={})


def test_telephone_numbers_need_no_library(loaded: Callable[..., Gateway]) -> None:
    """Their rules are compiled into the engine (ci/phone_rules.py)."""
    guard = "ai: {promptGuard: {request: [{regex: {rules: [{builtin: phoneNumber}]}}]}}"
    model = "ai: {name: a, provider: {openAI: {}}}, policies: {" + guard + "}"
    assert loaded("gateways: {default: {port: 1}}\nroutes: [{backends: [{" + model + "}]}]\n", environ={}).binds


def test_every_extra_of_the_package_is_told_by_an_error() -> None:
    """`controller` and `tui` are for commands: test_controller.py, test_top.py and test_proxy_trace.py of tests/headgate/cli."""
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    told = {extra for _, _, _, extra in NEEDS} | {"cloud", "controller", "tui"}
    assert project["optional-dependencies"].keys() - {"all"} == told
    assert set(extras.EXTRAS.values()) <= told
