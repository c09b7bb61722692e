"""Route delegation: requests that routes hand on to groups, as clients, logs and traces see them."""

from __future__ import annotations

import json

import httpx
import pytest
from tests.end_to_end.tracing import Watch

pytestmark = pytest.mark.warm

GROUPS = """
gateways: {default: {port: {port}}}
frontendPolicies: {accessLog: {add: {way: 'proxy.route.parents.join("+")'}}}
routes:
- name: outer
  hostnames: [a.test]
  matches: [{path: {pathPrefix: /o}}]
  policies:
    urlRewrite: {path: {prefix: /new}}
    responseHeaderModifier: {set: {x-outer: "1"}}
    requestHeaderModifier: {set: {x-a: outer}}
    authorization: {rules: ['request.headers["x-key"] == "k"']}
  backends: [{routeGroup: middle}]
- name: lost
  matches: [{path: {pathPrefix: /lost}}]
  backends: [{routeGroup: nowhere}]
- name: mixed
  matches: [{path: {pathPrefix: /mixed}}]
  backends: [{routeGroup: middle, weight: 1}, {host: "127.0.0.1:ECHO", weight: 1}]
- name: never
  matches: [{path: {pathPrefix: /never}}]
  backends: [{routeGroup: middle, weight: 0}]
routeGroups:
- name: middle
  routes:
  - name: deep
    matches: [{path: {pathPrefix: /o/deep}}]
    policies: {requestHeaderModifier: {set: {x-b: middle}}}
    backends: [{routeGroup: inner}]
  - name: near
    matches: [{path: {exact: /o/near}, method: GET}]
    backends: [{host: "127.0.0.1:ECHO"}]
  - name: of-b
    hostnames: [b.test]
    backends: [{host: "127.0.0.1:ECHO"}]
  - name: in-mixed
    matches: [{path: {pathPrefix: /mixed}}]
    policies: {directResponse: {status: 418}}
- name: inner
  routes:
  - name: leaf
    matches: [{path: {pathPrefix: /o/deep/leaf}}]
    policies: {urlRewrite: {path: {prefix: /leaf}}, responseHeaderModifier: {set: {x-leaf: "1"}}}
    backends: [{host: "127.0.0.1:ECHO"}]
  - name: rest
    backends: [{host: "127.0.0.1:ECHO"}]
"""
KEY = {"host": "a.test", "x-key": "k"}


def get(running, path: str, method: str = "GET", **headers: str) -> httpx.Response:
    return httpx.request(method, running.url + path, headers={**KEY, **headers}, timeout=60)


def test_requests_go_through_groups(gateway, echo) -> None:
    running = gateway(GROUPS.replace("ECHO", str(echo)))
    answer = get(running, "/o/near?q=1")
    assert answer.status_code == 200
    # Of the route that says so, not of the one that has the request.
    assert answer.json()["path"] == "/new/near?q=1"
    assert answer.headers["x-outer"] == "1"
    assert dict(answer.json()["headers"])["x-a"] == "outer"
    answer = get(running, "/o/deep/leaf/x")
    assert answer.json()["path"] == "/leaf/x"
    assert (answer.headers.get("x-outer"), answer.headers["x-leaf"]) == (None, "1")
    fields = dict(answer.json()["headers"])
    assert (fields.get("x-a"), fields["x-b"]) == (None, "middle")
    assert get(running, "/o/deep/else").json()["path"] == "/new/deep/else"
    # Rules of the outer route hold for all.
    assert get(running, "/o/deep/leaf/x", **{"x-key": "other"}).status_code == 403
    assert get(running, "/o/near", "POST").status_code == 404
    assert get(running, "/o/nothing").status_code == 404
    assert get(running, "/lost/a").text == "route not found"
    assert get(running, "/never").status_code == 500
    # Names of the group's routes narrow those of the outer one.
    assert get(running, "/o/near", host="b.test").status_code == 404
    for told in (
        "route=default/leaf",
        "route.parents=default/outer,default/deep",
        "way=default/outer+default/deep",
        "route not found: no route of the group 'middle' matches",
        "route not found: there is no route group 'nowhere', or it is empty",
    ):
        running.wait_log(told)
    found = {get(running, "/mixed").status_code for _ in range(40)}
    assert found == {200, 418}


def test_a_path_of_two_readings_does_not_get_round_the_rules_of_a_group(gateway, echo) -> None:
    text = GROUPS.replace("ECHO", str(echo)).replace(
        "  - name: near\n", "  - {name: shut, matches: [{path: {pathPrefix: /o/shut}}], policies: {authorization: {rules: [{deny: 'true'}]}}}\n  - name: near\n"
    )
    running = gateway(text)
    assert get(running, "/o/shut/a").status_code == 403
    for path in ("/o/deep/..%2fshut/a", "/o/deep%2f..%2fshut/a"):
        assert get(running, path).status_code in (400, 404)


def test_a_trace_explains_the_way(gateway, echo) -> None:
    running = gateway(GROUPS.replace("ECHO", str(echo)))
    watch = Watch(running)
    assert get(running, "/o/deep/leaf/x").status_code == 200
    events = [event["message"] for event in watch.wait()]
    chosen = [event for event in events if event["type"] == "routeSelection"]
    assert [event["selectedRoute"].rpartition("/")[2] for event in chosen] == ["outer", "deep", "leaf"]
    assert [name.rpartition("/")[2] for name in chosen[2]["evaluatedRoutes"]] == ["leaf", "rest"]
    told = [event["details"] for event in events if event["type"] == "policyEvent" and event["kind"] == "routeDelegation"]
    assert told == [{"from": "default/outer", "group": "middle"}, {"from": "default/deep", "group": "inner"}]
    policies = [event for event in events if event["type"] == "policySelection" and event["phase"] == "route"]
    assert len(policies) == 1
    assert policies[0]["effectivePolicy"]["urlRewrite"] is not None


def test_a_reload_changes_groups_and_nothing_else(gateway, echo) -> None:
    text = GROUPS.replace("ECHO", str(echo))
    running = gateway(text, workers=2)
    assert get(running, "/o/near").status_code == 200
    running.reload(text.replace("/o/near", "/o/nearer"))
    assert get(running, "/o/near").status_code == 404
    assert get(running, "/o/nearer").status_code == 200
    running.reload(text.replace("- name: inner", "- name: other"))
    assert get(running, "/o/deep/else").status_code == 404
    assert get(running, "/o/near").status_code == 200
    running.reload(text)
    assert get(running, "/o/deep/else").json()["path"] == "/new/deep/else"
    empty = text[: text.index("- name: inner")] + "- {name: inner, routes: []}\n"
    running.reload(empty)
    assert get(running, "/o/deep/else").status_code == 404
    running.reload(text)
    assert get(running, "/o/deep/else").status_code == 200


def test_what_cannot_work_keeps_the_configuration_in_force(gateway, echo) -> None:
    text = GROUPS.replace("ECHO", str(echo))
    running = gateway(text)
    before, _, _ = text.rpartition("    backends: ")
    running.write(before + "    backends: [{routeGroup: middle}]\n")
    running.wait_log("route delegation cycle detected: middle > inner > middle")
    assert get(running, "/o/near").status_code == 200


def test_all_of_it_is_in_the_dump(gateway, echo) -> None:
    running = gateway(GROUPS.replace("ECHO", str(echo)))
    _, page = running.fetch(f"http://127.0.0.1:{running.admin}/config_dump")
    groups = json.loads(page)["routes"]["routeGroups"]
    names = {tuple(sorted(route["name"] for route in routes.values())) for routes in groups.values()}
    assert ("leaf", "rest") in names
