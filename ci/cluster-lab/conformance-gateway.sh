#!/usr/bin/env bash
# Runs the Gateway API conformance suite against `headgate controller`: the controller, one gateway per
# Gateway and the suite's pods are processes in one network namespace (see conformance.sh).
#   conformance-gateway.sh RUNDIR [suite flags]
# Environment: HEADGATE  the program (default .venv/bin/headgate of this repository)
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
exec "$here/conformance.sh" "$@"
