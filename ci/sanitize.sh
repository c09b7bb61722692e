#!/usr/bin/env bash
# Engine tests and fuzz targets over an engine with AddressSanitizer and UndefinedBehaviourSanitizer (gcc with libasan and
# libubsan). Usage: ci/sanitize.sh SECONDS [smoke]
#   SECONDS  for each fuzz target
#   smoke    only modules that read what peers send, or tell others of it, are built so, and only their tests and targets run
# Ends with 3 where the sanitizers are missing.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-10}
python=${PYTHON:-.venv/bin/python}
if [ "${2:-}" = smoke ]; then
    environment=$(ci/instrumented.sh address address-smoke .context.,.document.,.http1.,.tls.,.link.secure,.link.handshake,.link.attempt,.link.downstream,.link.exchange,.link.http2_,.link.tapped,.wire.,.sse.,.websocket.,.peek.scan,.peek.json)
    tests='tests/engine/context tests/engine/http1 tests/engine/wire tests/engine/sse tests/engine/tls tests/engine/link/test_secure.py tests/engine/link/test_handshake.py tests/engine/websocket
        tests/engine/link/test_http2_server.py tests/engine/link/test_http2_upstream.py tests/engine/link/test_tapped.py'
    targets='fuzz/document/fuzz_blocks.py fuzz/http1/fuzz_codec.py fuzz/peek/fuzz_json.py fuzz/request/fuzz_credentials.py fuzz/sse/fuzz_decode.py fuzz/tls/fuzz_hello.py fuzz/websocket/fuzz_frames.py fuzz/wire/fuzz_coding.py'
else
    environment=$(ci/instrumented.sh address)
    tests=tests/engine
    targets=$(echo fuzz/*/fuzz_*.py)
fi
# What a test tells of memory (test_heap) is that of CPython's own allocator.
env $environment "$python" -X faulthandler -m pytest -m "not slow" -p no:cacheprovider --deselect tests/engine/profile $tests
for target in $targets; do
    echo "== $target"
    env $environment "$python" "$target" --seconds "$seconds"
done
