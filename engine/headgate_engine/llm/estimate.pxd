# How many tokens a prompt has, about: for limits that must decide before a provider has counted.

from headgate_engine.context.request cimport Reply

from libc.stdint cimport int64_t

# Of a UTF-8 text.
cdef int64_t text_tokens(const char* p, Py_ssize_t n) noexcept nogil
# Of all texts in a message, a part, or a list of them.
cdef int64_t tokens_in(object value) except -1
# Of a request in a client format; 0 for a body that is no JSON object.
cdef int64_t prompt_tokens(str format, bytes body) except -1
# The same for one that is decoded.
cdef int64_t document_tokens(str format, object told) except -1
# The answer to a counting request where the provider cannot be asked (https://docs.anthropic.com/en/api/messages-count-tokens,
# https://ai.google.dev/api/tokens, https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_CountTokens.html).
cdef Reply estimate_of(str format, int64_t found)
