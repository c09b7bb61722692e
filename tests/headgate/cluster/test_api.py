"""Calls to an API server."""

from __future__ import annotations

import json
import socket
from dataclasses import replace

import pytest
import trustme
from cluster_rig import StandIn, cluster

from headgate.cluster.api import ApiServer
from headgate.cluster.errors import ClusterError

__all__ = ["cluster"]


def test_an_object_is_read_over_verified_tls(cluster: StandIn) -> None:
    cluster.objects["/a?b=c+d"] = {"kind": "x"}
    assert cluster.api().get("/a", {"b": "c d"}) == {"kind": "x"}


def test_a_base_path_stands_in_front(cluster: StandIn) -> None:
    access = cluster.api().access
    cluster.objects["/k8s/a"] = {}
    assert ApiServer(replace(access, server=f"{access.server}/k8s/")).get("/a") == {}


def test_another_authority_is_refused_unless_it_is_not_looked_at(cluster: StandIn) -> None:
    access = replace(cluster.api().access, authority=trustme.CA().cert_pem.bytes())
    cluster.objects["/a"] = {}
    with pytest.raises(ClusterError, match=r"TLS with the API server .* failed"):
        ApiServer(access).get("/a")
    assert ApiServer(replace(access, verified=False)).get("/a") == {}


def test_the_name_of_the_certificate_counts(cluster: StandIn) -> None:
    with pytest.raises(ClusterError, match="TLS with the API server"):
        ApiServer(replace(cluster.api().access, server_name="other.test")).get("/a")


def test_a_refusal_has_the_message_of_the_status(cluster: StandIn) -> None:
    cluster.kubeconfig.write_text(json.dumps(cluster.document(token="another")))
    with pytest.raises(ClusterError, match=r"^GET /a: 401 Unauthorized: Unauthorized$"):
        cluster.api().get("/a")


def test_an_answer_that_is_no_object(cluster: StandIn) -> None:
    cluster.objects["/a"] = [1]
    with pytest.raises(ClusterError, match="did not answer with a JSON object"):
        cluster.api().get("/a")


def test_nobody_there(cluster: StandIn) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(ClusterError, match=r"no answer from the API server https://127.0.0.1:.*: Connection refused"):
        ApiServer(replace(cluster.api().access, server=f"https://127.0.0.1:{port}")).get("/a")


@pytest.mark.parametrize("server", ["https://", "https://a:b"])
def test_what_is_no_url(cluster: StandIn, server: str) -> None:
    with pytest.raises(ClusterError, match="not a URL"):
        ApiServer(replace(cluster.api().access, server=server))


def test_a_certificate_that_cannot_be_read(cluster: StandIn) -> None:
    with pytest.raises(ClusterError, match="certificates of the kubeconfig cannot be used"):
        ApiServer(replace(cluster.api().access, certificate=b"x", key=b"y"))
