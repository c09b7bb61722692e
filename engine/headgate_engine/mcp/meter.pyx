"""Calls, errors, latency and state of an MCP target; see meter.pxd.

Where a server gives its name: https://modelcontextprotocol.io/specification/draft/server/discover.
"""

import json

from headgate_engine.clock cimport monotonic_ns, wall_ns
from headgate_engine.shared.histogram cimport Histogram
from headgate_engine.shared.segment cimport Segment

from libc.stdint cimport int64_t
from libc.string cimport memcmp

from headgate_engine.log.labels import label
from headgate_engine.mcp.telemetry import error_in

cdef extern from "<string.h>" nogil:
    void* memmem(const void* haystack, size_t n, const void* needle, size_t m)

FAMILY = b"gw_mcp_target_call_duration_seconds"
# Buckets H of headgate.telemetry.families.
SECONDS = (0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 80)
# Values of the label `outcome`: a response with a result, one with an error, none.
OK, ERROR, FAILED = "ok", "error", "failed"
# Where a server gives its name in an answer to `server/discover` (revision 2026-07-28).
DISCOVERED = "io.modelcontextprotocol/serverInfo"
# Letters of an error, a name or a version that are kept.
MAX_TEXT = 256
TOOL_FAILED = "the tool has failed"
cdef enum:
    MILLION = 1000000
    MAYBE_ERROR = 1
    FAILED_TOOL = 2


cdef int faults_in(bytes answer):
    """The faults that an answer may have, found in one pass: MAYBE_ERROR for `error`, FAILED_TOOL for `"isError": true`."""
    cdef const char* p = answer
    cdef const char* end = p + len(answer)
    cdef const char* at = p
    cdef int found = 0
    while True:
        at = <const char*>memmem(at, end - at, b'rror"', 5)
        if at == NULL:
            return found
        if at - p >= 2 and memcmp(at - 2, b'"e', 2) == 0:
            found |= MAYBE_ERROR
        elif at - p >= 4 and memcmp(at - 4, b'"isE', 4) == 0:
            at += 5
            while at < end and at[0] in b" \t\r\n:":
                at += 1
            if end - at >= 4 and memcmp(at, b"true", 4) == 0:
                found |= FAILED_TOOL
            continue
        at += 5


cdef str cut(object text):
    return text[:MAX_TEXT] if isinstance(text, str) else None


cdef class McpTargetMeter:
    """`backend` and `target` are labels of its series. Times are taken from CLOCK_MONOTONIC."""

    def __init__(self, Segment segment not None, str backend not None, str target not None):
        self.segment = segment
        self.labels = label("backend", backend) + "," + label("server", target)

    cdef Histogram _series(self, str outcome):
        text = f"{label('outcome', outcome)},{self.labels}"
        return Histogram(self.segment, FAMILY + b"\0" + text.encode("utf-8", "replace"), SECONDS)

    cdef int _note_error(self, str text, int64_t now_ns) except -1:
        self.error = text[:MAX_TEXT]
        self.error_ns = now_ns
        return 0

    cpdef int answered(self, int64_t took_ns, str method, bytes answer) except -1:
        cdef int64_t now_ns = monotonic_ns()
        cdef int faults = faults_in(answer)
        cdef object error
        cdef Histogram series
        self.answered_ns = now_ns
        error = error_in(answer) if faults & MAYBE_ERROR else None
        if error is not None:
            return self.refused_with(took_ns, str(error.get("message")))
        if faults & FAILED_TOOL and method == "tools/call":
            return self.refused_with(took_ns, TOOL_FAILED)
        if self.passed is None:
            self.passed = self._series(OK)
        series = self.passed
        series.observe_scaled(took_ns)
        return 0

    cpdef int refused_with(self, int64_t took_ns, str text) except -1:
        cdef int64_t now_ns = monotonic_ns()
        cdef Histogram series
        self.answered_ns = now_ns
        if self.refused is None:
            self.refused = self._series(ERROR)
        series = self.refused
        series.observe_scaled(took_ns)
        return self._note_error(text, now_ns)

    cpdef int failed(self, int64_t took_ns, str text) except -1:
        cdef int64_t now_ns = monotonic_ns()
        cdef Histogram series
        self.failed_ns = now_ns
        if self.lost is None:
            self.lost = self._series(FAILED)
        series = self.lost
        series.observe_scaled(took_ns)
        return self._note_error(text, now_ns)

    def opened(self, bytes answer not None, str protocol):
        """Note what an answer to `initialize` or `server/discover` tells. `protocol`: the revision, where the answer does
        not say which one is spoken."""
        try:
            result = json.loads(answer).get("result")
        except (ValueError, AttributeError, RecursionError):
            return
        if not isinstance(result, dict):
            return
        meta = result.get("_meta")
        info = result.get("serverInfo") or (meta.get(DISCOVERED) if isinstance(meta, dict) else None)
        if isinstance(info, dict):
            self.name, self.version = cut(info.get("name")), cut(info.get("version"))
        self.protocol = cut(result.get("protocolVersion")) or protocol
        self.opened_ns = monotonic_ns()

    def state(self):
        """What is known, {} of a target that was never called. Times in ms since 1970."""
        cdef int64_t offset_ns = wall_ns() - monotonic_ns()
        found = {"name": self.name, "version": self.version, "protocol": self.protocol, "error": self.error}
        times = {"opened": self.opened_ns, "answered": self.answered_ns, "failed": self.failed_ns, "erred": self.error_ns}
        if not any(times.values()):
            return {}
        return found | {key: (value + offset_ns) // MILLION if value else 0 for key, value in times.items()}
