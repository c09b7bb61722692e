"""What errors mean, whatever their vendor calls them: one table of words, and the statuses that belong to the kinds.

Kinds are the error types of Messages, which are the finest ones. Sources: https://docs.claude.com/en/api/errors,
https://platform.openai.com/docs/guides/error-codes, https://cloud.google.com/apis/design/errors and
https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html.
"""

# HTTP status of each kind.
STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
    "api_error": 500,
}
ERROR_TYPES = frozenset(STATUSES)
# Kind of an HTTP status; others are invalid_request_error below 500, and api_error.
BY_STATUS = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    413: "request_too_large",
    # The model failed (Bedrock): nothing is wrong with the request.
    424: "api_error",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
# Words of vendors for types, codes and statuses.
WORDS = {
    **{kind: kind for kind in STATUSES},
    # OpenAI
    "rate_limit_exceeded": "rate_limit_error",
    "insufficient_quota": "rate_limit_error",
    "requests": "rate_limit_error",
    "tokens": "rate_limit_error",
    "slow_down": "rate_limit_error",
    "billing_hard_limit_reached": "billing_error",
    "billing_not_active": "billing_error",
    "invalid_api_key": "authentication_error",
    "model_not_found": "not_found_error",
    "context_length_exceeded": "invalid_request_error",
    "string_above_max_length": "invalid_request_error",
    "invalid_prompt": "invalid_request_error",
    # Pictures that Responses cannot read (https://platform.openai.com/docs/api-reference/responses/object).
    **dict.fromkeys((
        "invalid_image", "invalid_image_format", "invalid_base64_image", "invalid_image_url", "invalid_image_mode",
        "image_too_large", "image_too_small", "image_parse_error", "image_content_policy_violation", "image_file_too_large",
        "unsupported_image_media_type", "empty_image_file", "failed_to_download_image", "image_file_not_found",
    ), "invalid_request_error"),
    "unsupported_country_region_territory": "permission_error",
    "server_error": "api_error",
    "server_is_overloaded": "overloaded_error",
    "engine_overloaded_error": "overloaded_error",
    # Google
    "INVALID_ARGUMENT": "invalid_request_error",
    "FAILED_PRECONDITION": "invalid_request_error",
    "OUT_OF_RANGE": "invalid_request_error",
    "NOT_FOUND": "not_found_error",
    "PERMISSION_DENIED": "permission_error",
    "UNAUTHENTICATED": "authentication_error",
    "RESOURCE_EXHAUSTED": "rate_limit_error",
    "DEADLINE_EXCEEDED": "timeout_error",
    "UNAVAILABLE": "api_error",
    "INTERNAL": "api_error",
    # Amazon
    "validationException": "invalid_request_error",
    "accessDeniedException": "permission_error",
    "resourceNotFoundException": "not_found_error",
    "throttlingException": "rate_limit_error",
    "serviceQuotaExceededException": "rate_limit_error",
    "modelNotReadyException": "overloaded_error",
    "modelTimeoutException": "timeout_error",
    "modelErrorException": "api_error",
    "modelStreamErrorException": "api_error",
    "internalServerException": "api_error",
    "serviceUnavailableException": "api_error",
}
# Statuses that words stand for where they are not those of their kind.
WORD_STATUSES = {
    "UNAVAILABLE": 503,
    "serviceUnavailableException": 503,
    "modelStreamErrorException": 502,
    "server_is_overloaded": 503,
    "engine_overloaded_error": 503,
    "modelNotReadyException": 429,
}

cdef dict words = WORDS
cdef dict statuses = STATUSES
cdef dict by_status = BY_STATUS
cdef dict word_statuses = WORD_STATUSES


cpdef str kind_of_status(int status):
    cdef str found = by_status.get(status)
    if found is not None:
        return found
    return "invalid_request_error" if 400 <= status < 500 else "api_error"


cpdef str kind_of(str type, str code, int status):
    cdef str found = words.get(code)
    if found is None:
        found = words.get(type)
    if status and (found is None or found == "invalid_request_error" or found == "api_error"):
        # General words: the status says more.
        return kind_of_status(status)
    return "api_error" if found is None else found


cpdef int status_of(str type, str code):
    cdef object found = word_statuses.get(code)
    if found is None:
        found = word_statuses.get(type)
    return statuses[kind_of(type, code, 0)] if found is None else found
