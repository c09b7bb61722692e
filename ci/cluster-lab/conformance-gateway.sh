#!/usr/bin/env bash
# Runs the Gateway API conformance suite against `headgate controller`: the controller, one gateway for each
# Gateway and the suite's pods are processes in one network namespace (see conformance.sh).
#   conformance-gateway.sh RUNDIR [suite flags]     e.g. -report-output FILE, or -run-test HTTPRouteWeight
# The features are those that the status of the GatewayClass claims; -supported-features names others.
# Environment: HEADGATE       the program (default .venv/bin/headgate of this repository)
#              HEADGATE_LOG   level of the controller's log, RUNDIR/log/gateway.log (default info)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd); top=$(cd "$here/../.." && pwd)
export HEADGATE_TOP=$top HEADGATE=${HEADGATE:-$top/.venv/bin/headgate}
# A loaded API server answers some of its first requests with a time-out.
patient() { for _ in 1 2 3 4 5; do if "$@"; then return 0; fi; sleep 2; done; return 1; }
setup() {
  patient kubectl apply --server-side -f - --request-timeout=120s <<NS
{apiVersion: v1, kind: Namespace, metadata: {name: headgate-system}}
NS
  patient kubectl apply --server-side -f "$HEADGATE_TOP/deploy/crds" --request-timeout=120s
}
export -f patient setup
export KUBETEST_SETUP=setup
export GATEWAY_CMD='exec "$HEADGATE" controller --local-gateways 10.98.0.0/16 --log-level ${HEADGATE_LOG:-info}'
export GATEWAY_CLASS=headgate GATEWAY_CONTROLLER=headgate.dev/headgate
version=$("$HEADGATE" --version | sed -n 's/.*"version": "\([^"]*\)".*/\1/p')
run=${1:?run directory}; shift
# Addresses for GatewayStaticAddresses: one in the range of local gateways, one out of it (RFC 5737).
exec "$here/conformance.sh" "$run" -conformance-profiles GATEWAY-HTTP,GATEWAY-GRPC,GATEWAY-TLS \
  -organization headgate -project headgate -url https://headgate.dev -version "$version" -contact https://headgate.dev \
  -usable-address 10.98.255.1 -unusable-address 192.0.2.1 "$@"
