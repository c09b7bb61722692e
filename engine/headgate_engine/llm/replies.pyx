"""Refusals of LLM routes; see replies.pxd."""

import json

from headgate_engine.context.request cimport Reply

REASONS = {403: "Authorization", 404: "NotFound", 502: "UpstreamFailure"}


cdef Reply refusal(int status, str code, str message):
    body = json.dumps({"error": {"message": message, "type": "invalid_request_error", "code": code}},
                      separators=(",", ":")).encode()
    return Reply(status, body, ((b"content-type", b"application/json"),), REASONS.get(status, "InvalidRequest"))


# -- of routers --------------------------------------------------------------------------------------------------------
cdef Reply NOT_JSON = refusal(400, "invalid_request_body", "the request body is not a JSON object")
cdef Reply NO_MODEL = refusal(400, "missing_model", "the request names no model")
cdef Reply BAD_MODEL = refusal(400, "invalid_model", "the model must be a non-empty string")
cdef Reply BAD_ENCODING = refusal(400, "request_body_decode_failed", "the request body cannot be decoded")
cdef Reply UNKNOWN_ENCODING = refusal(415, "unsupported_content_encoding",
                                      "the request body has a content-encoding other than one of gzip, deflate, br, zstd")
cdef Reply TOO_LONG = refusal(413, "request_body_too_large", "the request body is larger than the buffer")
cdef Reply NO_UPGRADE = refusal(400, "invalid_request_body", "only realtime conversations go over WebSockets")
cdef Reply NO_LIST = Reply(501, b'{"error":"Route \'Models\' not implemented"}', ((b"content-type", b"application/json"),),
                           "NotImplemented")
cdef Reply UNKNOWN_PATH = refusal(
    403, "unknown_path", "the guards of this model cannot read requests to this path; `routes` can allow it")
cdef Reply TOO_MANY = refusal(400, "invalid_request_body", "the request body has too many members")
cdef Reply TWO_MODELS = refusal(400, "invalid_request_body", "the request names the model twice")
cdef Reply NO_BATCHES = refusal(
    400, "unsupported_conversion", "the provider of these models takes no batches of Messages; ask for each answer alone")
cdef Reply NO_TARGET = refusal(400, "virtual_model_no_matching_target", "no condition of the virtual model holds")
cdef Reply NOT_RESOLVED = refusal(404, "virtual_model_not_resolved", "the request fits no target of the virtual model")
cdef Reply SEVERAL_PROVIDERS = refusal(
    400, "models_of_several_providers",
    "the requests of the batch name models of several providers; send a batch for each provider")


def refused(int status, str code not None, str message not None):
    """The error object of LLM routes."""
    return refusal(status, code, message)
