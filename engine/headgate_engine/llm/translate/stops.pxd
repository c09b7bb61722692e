# Why a reply ended, in every format's words.

cpdef str read_stop(str format, object word)
# A tier of service in OpenAI's words; None for other words than Anthropic's.
cpdef str tier_of_messages(object word)
cpdef str write_stop(str format, str stop)
