# The texts of an LLM request or reply, by byte offsets: the texts of persons and models, in pieces, runs and turns. A
# body is read once, without building its values. All memory is C arrays of the transcript.

from libc.stdint cimport uint8_t

cdef enum Scope:
    S_SYSTEM = 0
    S_MESSAGES = 1
    S_INPUT = 2                # input of tools
    S_OUTPUT = 3               # output of tools

cdef enum Role:
    # Roles that a format implies. ROLE_WRITTEN: the body names the role.
    ROLE_NONE = 0
    ROLE_SYSTEM = 1
    ROLE_USER = 2
    ROLE_ASSISTANT = 3
    ROLE_WRITTEN = 4

cdef enum:
    NO_TURN = -1
    MOST_BYTES = 0x7FFFFFF0    # length of a body
    WORD = 64                  # bytes of a short string that are read for comparison
    SPACE = 32
    LINE = 10

cdef struct Span:
    int start, stop

cdef struct Member:
    # A member with a known name. `name`: its number (transcript.name_of).
    int name
    int start, stop

cdef struct Fields:
    # Members of one object, as a range of the transcript's `members`.
    int first, count

cdef struct Piece:
    # One value: a string with its quotes, or raw JSON. `element`: from its array item's start to the start of the next
    # item; 0..0: it cannot be removed. `clears`: values that must be emptied if the piece changes.
    int start, stop
    Span element
    int turn
    int clears, clear_count
    bint raw
    int coded                  # of a text file in base64: where that begins in the string; 0: the string is the text

cdef struct Run:
    # Pieces that form one text for patterns, with `joiner` between them; they are adjacent in `pieces`.
    int first, count
    uint8_t scope, joiner

cdef struct Turn:
    # One message of the conversation. `name`: the string that names the role, for ROLE_WRITTEN.
    int role
    Span name
    uint8_t joiner

cdef struct Clear:
    Span span
    bint null                  # replace by null, else by []

cdef struct Word:
    # The last bytes of a short decoded string. `length`: of the whole string.
    uint8_t text[WORD]
    int length

cdef class BodyTexts:
    cdef readonly bytes body
    cdef const uint8_t* p
    cdef int n, lead           # length; offset of the object
    cdef Member* members
    cdef Piece* pieces
    cdef Run* runs
    cdef Turn* turns
    cdef Clear* clears
    cdef int member_count, member_room, piece_count, piece_room, run_count, run_room, turn_count, turn_room
    cdef int clear_count, clear_room
    cdef bint open             # the last run may continue
    # Checks a body. Raises PeekError, or ValueError if it is not an object.
    cdef int begin(self, bytes body) except -1
    # -- reading
    # Finds the members of the object at `at` (0: the top one), none for other types. They stay valid until drop().
    cdef int fields(self, int at, Fields* found) except -1 nogil
    cdef void drop(self, const Fields* fields) noexcept nogil
    # Finds the next member of that name behind `position` (0 at first). Returns False at the end.
    cdef bint each(self, const Fields* fields, int name, int* position, Span* found) noexcept nogil
    # Finds the next item of an array. `at`: 0 at first. `element`: the bytes to delete if the item is removed.
    cdef bint item(self, int array, int* at, Span* found, Span* element) noexcept nogil
    # Finds the next value of an object, whatever its name. `at`: 0 at first.
    cdef bint value(self, int start, int* at, Span* found) noexcept nogil
    cdef bint is_text(self, int at) noexcept nogil
    cdef bint is_value(self, int start, int stop, const char* text) noexcept nogil
    cdef Word word(self, int start, int stop) noexcept nogil
    # -- collecting
    cdef int turn(self, int role, uint8_t joiner) except -1 nogil
    cdef void cut(self) noexcept nogil
    cdef Piece* add(self, int scope, int start, int stop, int turn, uint8_t joiner) except NULL nogil
    cdef int alone(self, int scope, int start, int stop) except -1 nogil
    # Adds all strings of that name, each as a text of its own.
    cdef int strings(self, int scope, const Fields* fields, int name) except -1 nogil
    # Adds a text file in base64, which begins at `coded` within the string, as a text of its own.
    cdef int file(self, int scope, int start, int stop, int coded, int turn) except -1 nogil
    # Adds all values of that name, strings or not, except null.
    cdef int values(self, int scope, const Fields* fields, int name) except -1 nogil
    cdef int clear(self, int start, int stop, bint null) except -1 nogil
    # -- results
    # Sets the text of a run: a pointer into the body if the raw bytes are the text, else into `room`, which is enlarged
    # as needed.
    cdef int text_of(self, int run, Text* text) except -1 nogil
    cdef bytes _text(self, const Piece* pieces, int count, uint8_t joiner)
    cdef tuple _piece(self, const Piece* piece)

cdef struct Text:
    const uint8_t* p
    Py_ssize_t n
    uint8_t* room              # freed by the caller
    Py_ssize_t capacity

# Returns the number of a member's name, 0 for an unknown one.
cdef int name_of(const uint8_t* p, int n) noexcept nogil
# Return the length of a piece's text in bytes of UTF-8, at most that of the piece, and write it.
cdef Py_ssize_t written(const uint8_t* p, const Piece* piece, uint8_t* out) noexcept nogil
cdef bint word_is(const Word* word, const char* text) noexcept nogil
cdef bint word_ends(const Word* word, const char* text) noexcept nogil
# Returns the array with room for one more item of `size` bytes.
cdef void* grown(void* items, int count, int* room, size_t size) except NULL nogil

cdef enum Name:
    N_NONE = 0
    N_ACTION, N_ACTIONS, N_ANNOTATIONS, N_ARGS, N_ARGUMENTS, N_AUDIO, N_CANDIDATES, N_CHOICES, N_CITATIONS_CONTENT, N_CODE
    N_CODE_EXECUTION_RESULT, N_CODE_EXECUTION_RESULT_SNAKE, N_CONTENT, N_CONTENTS, N_CONTEXT, N_CUSTOM, N_DATA
    N_DOCUMENT, N_DOCUMENTS, N_EXECUTABLE_CODE, N_EXECUTABLE_CODE_SNAKE, N_FUNCTION, N_FUNCTION_CALL, N_FUNCTION_CALL_SNAKE
    N_FUNCTION_RESPONSE, N_FUNCTION_RESPONSE_SNAKE, N_GUARD_CONTENT, N_INPUT, N_INPUT_AUDIO_TRANSCRIPTION, N_INSTRUCTIONS
    N_ITEM, N_JSON, N_LOGPROBS
    N_MESSAGE, N_MESSAGES
    N_OPERATION, N_OUTPUT, N_OUTPUTS, N_PARTS, N_PROMPT, N_PROMPT_VARIABLES, N_QUERIES, N_QUERY, N_REFUSAL, N_RESPONSE
    N_RESULTS, N_ROLE, N_SEARCH_RESULT, N_SESSION, N_SOURCE, N_SYSTEM, N_SYSTEM_INSTRUCTION, N_SYSTEM_INSTRUCTION_SNAKE
    N_TEXT, N_THOUGHT, N_TITLE, N_TOOL_CALLS, N_TOOL_RESULT, N_TOOL_USE, N_TOOLS, N_TRANSCRIPT, N_TRANSCRIPTION, N_TYPE, N_VARIABLES
    N_BYTES, N_FILE, N_FILE_DATA, N_FORMAT, N_INLINE_DATA, N_INLINE_DATA_SNAKE, N_MEDIA_TYPE, N_MIME_TYPE, N_MIME_TYPE_SNAKE
    N_IMAGES, N_IMAGE_URL, N_URL
    N_COUNT
