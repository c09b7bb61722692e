"""What the writer of statuses knows of the last translation."""

from __future__ import annotations

from manifests import http_route

from headgate.cluster.snapshot import HTTP_ROUTE, INFERENCE_POOL, ObjectKey, Snapshot
from headgate.cluster.status.translated import LastTranslation

MAIN = ObjectKey("edge", "main")
POOL = ObjectKey("edge", "models")


def test_objects_are_told_apart_by_their_uid() -> None:
    route = http_route()
    found = LastTranslation(Snapshot.of([route | {"metadata": {**route["metadata"], "uid": "u"}}]), ())
    assert [found.uid(HTTP_ROUTE, ObjectKey("shop", name)) for name in ("cart", "other")] == ["u", ""]


def test_parents_of_pools_are_ours_where_the_gateway_is() -> None:
    found = LastTranslation(Snapshot({}), {MAIN})
    cases = {
        (("name", "main"),): True, (("name", "main"), ("namespace", "edge"), ("kind", "Gateway")): True,
        (("name", "main"), ("namespace", "shop")): False, (("name", "main"), ("kind", "Service")): False, (): False,
    }  # fmt: skip
    assert {about: found.decides(INFERENCE_POOL, POOL, dict(about)) for about in cases} == cases
    assert not found.decides(HTTP_ROUTE, POOL, {"name": "main"})
