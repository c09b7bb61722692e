"""Refusals of LLM routes; see replies.pxd."""

import json

from headgate_engine.context.request cimport Reply

REASONS = {403: "Authorization", 404: "NotFound", 502: "UpstreamFailure"}


cdef Reply refusal(int status, str code, str message):
    body = json.dumps({"error": {"message": message, "type": "invalid_request_error", "code": code}},
                      separators=(",", ":")).encode()
    return Reply(status, body, ((b"content-type", b"application/json"),), REASONS.get(status, "InvalidRequest"))


def refused(int status, str code not None, str message not None):
    """The error object of LLM routes."""
    return refusal(status, code, message)
