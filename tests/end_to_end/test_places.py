"""Every entry of `gateways` is a listener of the gateway `default/default`, for policies, logs, metrics and expressions alike."""

from __future__ import annotations

import http.client
import json

CONFIG = """
gateways:
  default: {port: {port}}
  edge: {port: SPARE, listeners: [{name: one, hostname: one.test}, {name: two, hostname: two.test}]}
routes:
- gateways: [default, edge]
  policies:
    directResponse:
      status: 200
      bodyExpression: >-
        {"bind": proxy.bind, "gateway": proxy.gateway, "listener": proxy.listener, "name": proxy.gateway.name + "/" + proxy.listener.name,
         "route": proxy.route}
frontendPolicies: {accessLog: {add: {at: 'proxy.gateway.namespace + "/" + proxy.gateway.name + "/" + proxy.listener.name'}}}
policies:
- name: {name: everywhere, namespace: n}
  target: {gateway: {gatewayName: default, gatewayNamespace: default}}
  policy: {responseHeaderModifier: {set: {x-everywhere: "1"}}}
- name: {name: closed, namespace: n}
  target: {gateway: {gatewayName: default, gatewayNamespace: default, listenerName: two}}
  policy: {authorization: {rules: [{deny: 'proxy.listener.name != "two" || true'}]}}
- name: {name: early, namespace: n}
  target: {gateway: {gatewayName: default, gatewayNamespace: default, listenerName: edge/one}}
  phase: gateway
  policy: {authorization: {rules: [{deny: 'request.path == "/early"'}]}}
"""


def fetch(port: int, host: str, path: str = "/") -> tuple[int, str | None, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", path, headers={"host": host})
        answer = connection.getresponse()
        return answer.status, answer.getheader("x-everywhere"), answer.read()
    finally:
        connection.close()


def test_policies_logs_metrics_and_expressions_agree(gateway) -> None:
    running = gateway("gateways: {default: {port: {port}}}")
    edge = running.spare
    running.write(CONFIG.replace("SPARE", str(edge)))
    running.wait_log("generation=2")
    for port, host, listener in ((running.port, "a.test", "default"), (edge, "one.test", "one")):
        status, everywhere, body = fetch(port, host)
        assert (status, everywhere) == (200, "1")
        assert json.loads(body) == {
            "bind": f"bind/{port}", "gateway": {"name": "default", "namespace": "default"}, "listener": {"name": listener},
            "name": f"default/{listener}", "route": {"name": "route0", "namespace": "default", "kind": "HTTPRoute"},
        }  # fmt: skip
        running.wait_log(f"request gateway=default/default listener={listener} route=default/route0")
        running.wait_log(f"at=default/default/{listener}")
    assert fetch(running.port, "a.test", "/early")[0] == 200
    assert fetch(edge, "one.test", "/early")[0] == 403
    assert fetch(edge, "two.test")[:2] == (403, "1")
    page = running.fetch(f"http://127.0.0.1:{running.stats}/metrics")[1]
    for port, listener, status in ((running.port, "default", 200), (edge, "one", 403), (edge, "two", 403)):
        wanted = f'bind="bind/{port}",gateway="default/default",listener="{listener}"'
        lines = [line for line in page.splitlines() if line.startswith("gw_requests_total{") and f'status="{status}"' in line]
        assert any(wanted in line for line in lines), page
