#!/usr/bin/env bash
# Tests under CPython's debugging allocator, in the tests and in every process of the gateways that they start: memory that is
# freed is overwritten, and writes over an end are seen. Usage: ci/debug_malloc.sh [short | TEST...]
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
end_to_end=tests/end_to_end
case "${1:-}" in
short)
    # The layers that call out most, and one way through the gateway for each kind of traffic.
    set -- tests/engine/context tests/engine/expr/test_nodes.py tests/engine/link tests/engine/plan tests/engine/steps \
        tests/engine/tls tests/engine/llm/test_native.py tests/engine/guard/test_stream.py \
        $end_to_end/test_debug_allocator.py $end_to_end/test_plain_http.py $end_to_end/test_resumption.py ;;
'')
    set -- tests/engine $end_to_end/test_debug_allocator.py $end_to_end/test_plain_http.py $end_to_end/test_hostile.py \
        $end_to_end/test_connections.py $end_to_end/test_tls.py $end_to_end/test_retry.py $end_to_end/test_limits.py $end_to_end/test_policies.py \
        $end_to_end/test_process.py $end_to_end/test_surroundings.py $end_to_end/test_tunnel.py $end_to_end/test_ext_proc.py \
        $end_to_end/test_ext_proc_hostile.py $end_to_end/test_ext_proc_models.py $end_to_end/test_http2.py \
        $end_to_end/test_llm.py $end_to_end/test_llm_behaviours.py $end_to_end/test_llm_failover.py \
        $end_to_end/test_llm_translated.py $end_to_end/test_llm_realtime.py $end_to_end/test_guards.py \
        $end_to_end/test_mcp.py $end_to_end/test_mcp_reloads.py $end_to_end/test_mcp_sessions.py $end_to_end/test_mcp_merging.py ;;
esac
PYTHONMALLOC=debug exec "$python" -X faulthandler -m pytest -m "not slow" --processes "${JOBS:-2}" -p no:cacheprovider "$@"
