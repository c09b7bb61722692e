# Functions that the readers of all formats share: roles and types of messages, and the texts of one object.

from headgate_engine.guard.transcript cimport Fields, Span, BodyTexts, Word

cdef struct Kinds:
    # The strings of one member, which may occur several times.
    int count
    Span last
    Word word                  # text of the last one

cdef struct Clears:
    # Values that must be emptied if a piece changes.
    int first, count

ctypedef bint (*Test)(const Word* word) noexcept nogil

cdef int words(BodyTexts t, const Fields* fields, int name, Test test, int* passed, Kinds* found) except -1 nogil
cdef bint is_system(const Word* word) noexcept nogil
cdef bint is_only_system(const Word* word) noexcept nogil
cdef bint is_tool(const Word* word) noexcept nogil
cdef bint is_text_type(const Word* word) noexcept nogil
cdef bint is_message(const Word* word) noexcept nogil
cdef bint is_call(const Word* word) noexcept nogil
cdef bint is_result(const Word* word) noexcept nogil
cdef bint is_unseen(const Word* word) noexcept nogil
cdef bint is_readable(const Word* word) noexcept nogil
cdef bint is_base64(const Word* word) noexcept nogil
cdef int count_words(BodyTexts t, const Fields* fields, int name, Test test) except -1 nogil
cdef int turn_of(BodyTexts t, const Kinds* roles, int otherwise, int joiner) except -1 nogil
cdef Clears no_clears() noexcept nogil
cdef int add_texts(BodyTexts t, const Fields* fields, int name, int scope, const Span* element, int turn, int joiner,
                   Clears clears) except -1 nogil
# Keeps the item of the `texts` pieces from `first` on if it has other pieces, too: a mask that leaves nothing of a text
# would otherwise remove the item, and what another one changes within it.
cdef void keep_item(BodyTexts t, int first, int texts) noexcept nogil
# Adds all strings of that name as texts of their own that belong to a message; NO_TURN: to none.
cdef int strings_in(BodyTexts t, int scope, const Fields* fields, int name, int turn) except -1 nogil
cdef int inner_values(BodyTexts t, const Fields* fields, int name, int inner, int scope) except -1 nogil
# Adds the text files in base64 of that name in an object: if the object's member
# `kind` names a type of text, or without one those that are data URLs of text.
cdef int files(BodyTexts t, const Fields* fields, int name, int kind, int scope, int turn) except -1 nogil
cdef int parts(BodyTexts t, Span span, int scope, int turn, int joiner, Clears clears, bint marked) except -1 nogil
cdef Clears marks(BodyTexts t, const Fields* fields) except * nogil
