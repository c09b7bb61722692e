"""Access to a cluster by kubeconfig files and by the service account of a pod."""

from __future__ import annotations

import base64
import copy
import json
import os
from pathlib import Path
from typing import Any

import pytest

from headgate.cluster.errors import ClusterError
from headgate.cluster.kubeconfig import ClusterAccess, load_access

NOWHERE = Path("/nowhere")
DOCUMENT: dict[str, Any] = {
    "current-context": "b",
    "contexts": [
        {"name": "a", "context": {"cluster": "one", "user": "me"}},
        {"name": "b", "context": {"cluster": "one", "user": "me", "namespace": "shop"}},
    ],
    "clusters": [{"name": "one", "cluster": {"server": "https://api.test:6443/"}}],
    "users": [{"name": "me", "user": {"token": "t"}}],
}


def write(path: Path, document: object) -> str:
    path.write_text(json.dumps(document))
    return str(path)


def changed(path: Path, user: dict[str, Any] | None = None, **cluster: Any) -> ClusterAccess:
    document = copy.deepcopy(DOCUMENT)
    document["clusters"][0]["cluster"].update(cluster)
    if user is not None:
        document["users"][0]["user"] = user
    return load_access(write(path / "config", document), {"PATH": os.environ["PATH"]}, NOWHERE)


def test_the_current_context_says_server_namespace_and_token(tmp_path: Path) -> None:
    found = changed(tmp_path)
    assert found == ClusterAccess(
        server="https://api.test:6443", namespace="shop", headers={"Authorization": "Bearer t"}
    )
    assert "Bearer" not in repr(found)


def test_the_first_file_wins_and_later_ones_fill_up(tmp_path: Path) -> None:
    first = write(tmp_path / "1", {"current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "one"}}]})
    second = write(tmp_path / "2", DOCUMENT)
    found = load_access(os.pathsep.join((str(tmp_path / "missing"), first, second)), {}, NOWHERE)
    assert (found.server, found.namespace, found.headers) == ("https://api.test:6443", "default", {})


def test_the_file_in_the_home_folder_is_read_without_a_name(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    write(tmp_path / ".kube/config", DOCUMENT)
    assert load_access(None, {}, tmp_path).namespace == "shop"


def test_certificates_come_as_data_or_as_files_beside_the_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "key.pem").write_text("a key")
    data = base64.b64encode(b"a certificate").decode()
    user = {"client-certificate-data": data, "client-key": "key.pem"}
    found = changed(tmp_path, user, **{"certificate-authority-data": data, "tls-server-name": "x"})
    assert (found.authority, found.certificate, found.key) == (b"a certificate", b"a certificate", b"a key")
    assert (found.server_name, found.headers) == ("x", {})


@pytest.mark.parametrize(
    ("user", "header"),
    [
        ({"username": "u", "password": "p:q"}, f"Basic {base64.b64encode(b'u:p:q').decode()}"),
        ({"tokenFile": "token"}, "Bearer from a file"),
        ({"token": "t", "as": "somebody"}, "Bearer t"),
    ],
)
def test_credentials(tmp_path: Path, user: dict[str, Any], header: str) -> None:
    (tmp_path / "token").write_text("from a file\n")
    found = changed(tmp_path, user)
    assert found.headers["Authorization"] == header
    assert found.headers.get("Impersonate-User") == user.get("as")


def test_a_pod_has_an_account_of_its_own(tmp_path: Path) -> None:
    for name, text in (("token", "t\n"), ("namespace", "edge\n"), ("ca.crt", "pem")):
        (tmp_path / name).write_text(text)
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    found = load_access(None, environ, NOWHERE, tmp_path)
    assert found == ClusterAccess(
        server="https://[fd00::1]:443", namespace="edge", authority=b"pem", headers={"Authorization": "Bearer t"},
        token_file=tmp_path / "token",
    )  # fmt: skip


def plugin(script: str, **more: Any) -> dict[str, Any]:
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "args": ["-c", script], **more}}


def test_a_plugin_gives_a_token(tmp_path: Path) -> None:
    script = 'test "$A" = b && printf \'{"status": {"token": "%s"}}\' "$(printf %s "$KUBERNETES_EXEC_INFO" | wc -c)"'
    found = changed(tmp_path, plugin(script, env=[{"name": "A", "value": "b"}]))
    assert int(found.headers["Authorization"].removeprefix("Bearer ")) > 50


def test_a_plugin_gives_a_certificate(tmp_path: Path) -> None:
    found = changed(tmp_path, plugin("""echo '{"status": {"clientCertificateData": "c", "clientKeyData": "k"}}'"""))
    assert (found.certificate, found.key, found.headers) == (b"c", b"k", {})


@pytest.mark.parametrize(
    ("user", "cluster", "why"),
    [
        ({"token": 1}, {}, "users[0].user: token: a string is expected"),
        ({"client-certificate-data": "!"}, {}, "client-certificate-data: base64 is expected"),
        ({"client-certificate": "gone.pem"}, {}, "client-certificate: cannot read"),
        ({"auth-provider": {"name": "gcp"}}, {}, "auth-provider is not supported"),
        ({}, {"proxy-url": "http://p"}, "proxy-url is not supported"),
        ({}, {"server": "api.test"}, "server: an http or https URL is expected"),
        (plugin("exit 3"), {}, "sh failed with 3"),
        (plugin("echo secret-token"), {}, "sh did not print an ExecCredential with a status"),
        (plugin("echo '{\"status\": {}}'"), {}, "gave neither a token nor a client certificate with its key"),
        (plugin("", command="/no/such", installHint="install it"), {}, "No such file or directory; install it"),
        (plugin("", apiVersion="v9"), {}, "apiVersion: one of client.authentication.k8s.io/v1"),
    ],
)
def test_faults_name_file_and_field_and_hold_no_secret(
    tmp_path: Path, user: dict[str, Any], cluster: dict[str, Any], why: str
) -> None:
    with pytest.raises(ClusterError) as found:
        changed(tmp_path, user, **cluster)
    assert why in str(found.value)
    assert str(tmp_path / "config") in str(found.value)
    assert "secret-token" not in str(found.value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: [", "kubeconfig:2: not YAML"),
        ("[]", "expected an object"),
        ("{}", "has no current-context"),
        ("current-context: x", 'names the context "x"'),
    ],
)
def test_files_that_are_none(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "kubeconfig").write_text(text + "\n")
    with pytest.raises(ClusterError, match=why.replace("[", r"\[")):
        load_access(str(tmp_path / "kubeconfig"), {}, NOWHERE)


def test_without_a_cluster_the_error_says_what_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=r"no access to a cluster: there is no .*/.kube/config, and this is not a pod"):
        load_access(None, {}, tmp_path, tmp_path)
    with pytest.raises(ClusterError, match="kubeconfig: no such file: /nowhere/k"):
        load_access("/nowhere/k", {}, tmp_path)
