"""What tests of trace and others share."""

from __future__ import annotations

PLAIN = [
    "requestStarted",
    "requestSnapshot initial request",
    "policySelection listenerFrontend",
    "traceSampling",
    "policySelection gateway",
    "requestSnapshot gateway policies",
    "routeSelection",
    "policySelection route",
    "requestSnapshot route policies",
    "policySelection backend",
    "requestSnapshot final request",
    "backendCallStart",
    "backendCallResult",
    "responseSnapshot raw response",
    "responseSnapshot backend response ready",
    "responseSnapshot final response",
    "bodySnapshot response",
    "requestFinished",
]
GATEWAY = """
gateways:
  default:
    port: {port}
routes:
- name: web
  backends: [{host: "127.0.0.1:%d"}]
"""
