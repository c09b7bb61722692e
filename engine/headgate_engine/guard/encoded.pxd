# Text files in base64 within JSON strings (RFC 4648 sections 4 and 5), as prompts have them.

from headgate_engine.guard.transcript cimport Word

from libc.stdint cimport uint8_t

# Decodes base64 between the quotes of a JSON string, with its escapes, into `out`, which needs no more room than the
# string. Returns the length. The result is UTF-8: a byte that is not becomes a question mark, so that offsets stay.
# What is no base64 is passed over, as decoders do.
cdef Py_ssize_t decode(const uint8_t* p, Py_ssize_t n, uint8_t* out) noexcept nogil
# Whether the text between `start` and the end of a word names a type of text: a media type, as far as the word has it.
cdef bint is_text_media(Word* word, int start) noexcept nogil
