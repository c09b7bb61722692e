"""Ids of the engine's own answers, by name, for the table in headgate.pipeline.replies."""

REPLY_IDS = {
    "invalid_request": REPLY_INVALID_REQUEST,
    "listener_not_found": REPLY_LISTENER_NOT_FOUND,
    "route_not_found": REPLY_ROUTE_NOT_FOUND,
    "method_not_allowed": REPLY_METHOD_NOT_ALLOWED,
    "no_valid_backends": REPLY_NO_VALID_BACKENDS,
    "body_too_large": REPLY_BODY_TOO_LARGE,
    "request_timeout": REPLY_REQUEST_TIMEOUT,
    "upstream_timeout": REPLY_UPSTREAM_TIMEOUT,
    "upstream_failed": REPLY_UPSTREAM_FAILED,
    "upstream_protocol": REPLY_UPSTREAM_PROTOCOL,
    "internal": REPLY_INTERNAL,
    "upgrade_refused": REPLY_UPGRADE_REFUSED,
    "misdirected": REPLY_MISDIRECTED,
    "no_healthy_backends": REPLY_NO_HEALTHY_BACKENDS,
    "doubtful_path": REPLY_DOUBTFUL_PATH,
    "invalid_backend": REPLY_INVALID_BACKEND,
    "bind_not_found": REPLY_BIND_NOT_FOUND,
    "response_too_large": REPLY_RESPONSE_TOO_LARGE,
}
