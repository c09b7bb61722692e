"""Loading: sources, watched files, environment, golden IR, examples, size."""

from __future__ import annotations

import io
import json
import pickle
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from example_files import ENVIRON, lay_out

from headgate.config.dump import Runtime, dump
from headgate.config.load import FileSource, LoadErrors, TextSource, UnreadableSource, load
from headgate.config.schema import schema
from headgate.document.nodes import plain
from headgate.document.read import read
from headgate.document.secret import private_channel
from headgate.errors import ConfigError, ConfigErrors, Problem
from headgate.ir.gateway import Gateway

ROOT = Path(__file__).parents[3]
GOLDEN = sorted((ROOT / "tests/golden/config").glob("*.yaml"))
# quickstart.yaml starts programs of the package and has tests of its own.
EXAMPLES = sorted(path for path in (ROOT / "examples").glob("*.yaml") if path.name != "quickstart.yaml")
SMALL = "gateways: {default: {port: 3000}}\nroutes: [{backends: [{host: 'h:1'}]}]\n"


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_golden_files_give_their_ir(path: Path, ir_json: Callable[[Any], Any], regold: bool) -> None:
    gateway = load(FileSource(str(path)), environ={"KEY": "canary"}).gateway
    printed = json.dumps(ir_json(gateway), indent=1, ensure_ascii=False) + "\n"
    expected = path.with_suffix(".ir.json")
    if regold:
        expected.write_text(printed)
    assert printed == expected.read_text()
    assert "canary" not in printed


def test_there_are_golden_files_and_examples() -> None:
    assert len(GOLDEN) >= 6
    assert len(EXAMPLES) >= 20


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_load_and_fit_the_schema(path: Path, tmp_path: Path) -> None:
    lay_out(tmp_path)
    copy = tmp_path / path.name
    shutil.copy(path, copy)
    found = load(FileSource(str(copy)), environ=ENVIRON)
    assert found.gateway.binds
    # What guards cannot see is told of every file that has some.
    assert [one for one in found.warnings if "guards do not check" not in one] == []
    validator = jsonschema.Draft202012Validator(schema())
    validator.validate(plain(read(path.read_text(), path.name)))
    assert dump(found.gateway, Runtime(generation=1, workers=1))["binds"]


def test_a_file_is_watched_with_the_files_it_names(tmp_path: Path, certificates: Any) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(
        f"gateways: {{g: {{port: 1, tls: {{cert: {certificates.folder}/a.crt, key: {certificates.folder}/a.key}}}}}}\n"
        "llm: {models: [{name: a, provider: openai, params: {apiKey: {file: key.txt}}}]}\n"
    )
    (tmp_path / "key.txt").write_text("  sk-1\n")
    found = load(FileSource(str(path)), environ={})
    assert found.watched_files == (
        str(path),
        f"{certificates.folder}/a.crt",
        f"{certificates.folder}/a.key",
        str(tmp_path / "key.txt"),
    )
    backend = (
        next(b for b in found.gateway.binds if b.port == 4000).listeners[0].routes[0].backends[0].backend
    )
    assert backend.models[0].policies.auth.main.key.secret.reveal() == "sk-1"  # type: ignore[union-attr]


def test_standard_input_and_texts_are_not_watched() -> None:
    assert load(FileSource("-"), environ={}, stdin=io.StringIO(SMALL)).watched_files == ()
    assert load(TextSource(SMALL), environ={}).watched_files == ()
    for name in ("-", "/dev/stdin", "/dev/fd/3", "/proc/self/fd/12"):
        assert FileSource(name).is_stream
    assert not FileSource("/dev/fdx").is_stream


def test_faults_name_the_source(tmp_path: Path) -> None:
    with pytest.raises(LoadErrors, match=r"unknown field 'a' \(--config:1\)"):
        load(TextSource("a: 1"), environ={})
    with pytest.raises(LoadErrors, match=r"\(<stdin>:1\)"):
        load(FileSource("-"), environ={}, stdin=io.StringIO("a: 1"))
    path = tmp_path / "c.yaml"
    path.write_text("a: [")
    with pytest.raises(LoadErrors, match=r"c\.yaml:[12]\)") as caught:
        load(FileSource(str(path)), environ={})
    assert caught.value.watched_files == (str(path),)


@pytest.mark.parametrize("name", ["none.yaml", "."])
def test_a_source_that_cannot_be_read_is_an_error(name: str, tmp_path: Path) -> None:
    with pytest.raises(UnreadableSource, match="cannot read the configuration"):
        load(FileSource(str(tmp_path / name)), environ={})
    bad = tmp_path / "bad.yaml"
    bad.write_bytes(b"a: \xff")
    with pytest.raises(UnreadableSource, match="UTF-8"):
        load(FileSource(str(bad)), environ={})


def test_a_missing_file_is_watched_so_that_its_arrival_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("gateways: {g: {port: 1, tls: {cert: a.crt, key: a.key}}}")
    with pytest.raises(LoadErrors, match=r"gateways\.g\.tls\.cert: cannot read 'a\.crt'") as caught:
        load(FileSource(str(path)), environ={})
    assert str(tmp_path / "a.crt") in caught.value.watched_files
    assert caught.value.errors[0].problem is Problem.FILE


def test_unset_variables_stop_the_load_with_their_names() -> None:
    with pytest.raises(ConfigErrors, match=r"environment variable not found: NOPE \(--config:1\)"):
        load(TextSource("config: {adminAddr: '${NOPE}'}"), environ={})


def test_an_unset_variable_hides_no_other_fault_and_nothing_else_is_told_of_it() -> None:
    text = """
gateways: {default: {port: "${PORT}"}}
llm: {models: [{name: a, provider: openai, params: {apiKey: $KEY}, guardrails: {reqest: []}}]}
routes:
- {name: a, hostnames: ["${HOST}.test"], backends: [{host: "${TARGET}:80"}], policies: {timeout: {requestTimeout: 5x}}}
- {name: b, policies: {basicAuth: {htpasswd: {file: "${FOLDER}/users"}}, authorization: {rules: ["1 +"]}}}
"""
    with pytest.raises(LoadErrors) as caught:
        load(TextSource(text, "c.yaml"), environ={})
    told = [str(fault) for fault in caught.value.errors]
    unset = [line for line in told if "environment variable not found" in line]
    assert [line.split(": ")[1].split(" ")[0] for line in unset] == ["PORT", "KEY", "HOST", "TARGET", "FOLDER"]
    others = [line for line in told if line not in unset]
    places = ("llm.models[0].guardrails", "routes[0].policies.timeout.requestTimeout", "routes[1].policies.authorization.rules[0]")
    assert [place for place in places if any(line.startswith(place) for line in others)] == list(places)
    assert len(others) == len(places), others


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing yet\n\n  # or so\n"])
def test_an_empty_file_is_told(text: str, tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(text)
    loaded = load(FileSource(str(path)), environ={})
    assert (loaded.blank, loaded.warnings) == (True, ("the configuration is empty: nothing is served",))
    path.write_text("{}")
    assert load(FileSource(str(path)), environ={}).warnings == ()


def test_json_loads_like_yaml() -> None:
    yaml = load(TextSource(SMALL), environ={}).gateway
    text = json.dumps(plain(read(SMALL, "c")), indent="\t")
    assert load(TextSource(text), environ={}).gateway == yaml


def test_equal_documents_have_equal_digests_and_others_do_not() -> None:
    def digest(text: str, **environ: str) -> str:
        return load(TextSource(text), environ=environ).gateway.digest

    keyed = "llm: {models: [{name: a, provider: openai, params: {apiKey: $K}}]}"
    assert digest(SMALL) == digest(f"# more\n{SMALL}")
    assert digest(SMALL) != digest(SMALL.replace("3000", "3001"))
    assert digest(keyed, K="one") == digest(keyed, K="one")
    assert digest(keyed, K="one") != digest(keyed, K="two")


def test_an_empty_configuration_loads() -> None:
    assert load(TextSource(""), environ={}).gateway.binds == ()


def test_a_gateway_travels_to_workers_only_through_the_private_channel() -> None:
    text = "llm: {models: [{name: a, provider: openai, params: {apiKey: canary}}]}"
    gateway = load(TextSource(text), environ={}).gateway
    with pytest.raises(TypeError):
        pickle.dumps(gateway)
    with private_channel():
        data = pickle.dumps(gateway)
    assert pickle.loads(data) == gateway
    assert "canary" not in repr(gateway)


def test_errors_travel_too() -> None:
    with pytest.raises(ConfigErrors) as caught:
        load(TextSource("a: 1"), environ={})
    assert pickle.loads(pickle.dumps(ConfigErrors(caught.value.errors))).errors == caught.value.errors


def _many(count: int) -> str:
    route = (
        "- name: r{0}\n  hostnames: [h{0}.test]\n  matches: [{{path: {{pathPrefix: /a/{0}}}, method: GET}}]\n"
    )
    route += (
        "  policies: {{timeout: {{requestTimeout: 5s}}}}\n  backends: [{{host: '10.0.0.1:{1}', weight: 2}}]\n"
    )
    return "gateways: {default: {port: 3000}}\nroutes:\n" + "".join(
        route.format(number, number % 60_000 + 1) for number in range(count)
    )


def test_the_work_of_loading_grows_with_the_file_and_not_faster() -> None:
    def spent(routes: int) -> int:
        """How many functions are called."""
        text, calls = _many(routes), 0

        def count(_frame: object, event: str, _argument: object) -> None:
            nonlocal calls
            calls += event in ("call", "c_call")

        sys.setprofile(count)
        try:
            gateway: Gateway = load(TextSource(text), environ={}).gateway
        finally:
            sys.setprofile(None)
        assert len(gateway.binds[0].listeners[0].routes) == routes
        return calls

    # Ten times the routes: quadratic work would take a hundred times as many.
    assert spent(3_000) < 12 * spent(300)


DEEP = """
gateways: {default: {port: 1}}
routes:
- name: a
  policies: {cors: {allowOrigin: 1}, transformations: {request: {set: {x: "b("}}}}
  backends: [{host: "127.0.0.1:1"}]
- name: b
  policies: {backendTLS: 5, basicAuth: {htpasswd: {file: /nowhere}}}
  backends: [{host: "127.0.0.1:1"}]
- name: c
  backends: [{host: 127.0.0.1}, {host: "127.0.0.1:1", policies: {requestRedirect: {nothing: 1}}}]
"""


def test_faults_of_the_shape_do_not_hide_those_of_what_fits_it() -> None:
    with pytest.raises(LoadErrors) as caught:
        load(TextSource(DEEP))
    found = {(error.path, error.line) for error in caught.value.errors}
    assert found == {
        ("routes[0].policies.cors", 5), ("routes[0].policies.transformations.request.set.x", 5),
        ("routes[1].policies.backendTLS", 8), ("routes[1].policies.basicAuth.htpasswd.file", 8),
        ("routes[2].backends[0].host", 11), ("routes[2].backends[1].policies.requestRedirect", 11),
    }  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, one in pairs for found in ((*path, key), *places(one, (*path, key)))]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_one_fault_of_the_shape_is_one_error(path: Path) -> None:
    """What comes of the hole that a fault leaves is none of its own."""
    for place in places(plain(read(path.read_text(), "x"))):
        document = plain(read(path.read_text(), "x"))
        inner = document
        for step in place[:-1]:
            inner = inner[step]
        inner[place[-1]] = [[[1]]]
        # Files of examples are not there.
        told = [one for one in faults(json.dumps(document)) if one.problem is not Problem.FILE]
        assert len(told) <= 1 or {one.problem for one in told} == {Problem.REFERENCE}, place


def faults(text: str) -> tuple[ConfigError, ...]:
    try:
        load(TextSource(text), environ=ENVIRON)
    except ConfigErrors as error:
        return error.errors
    return ()
