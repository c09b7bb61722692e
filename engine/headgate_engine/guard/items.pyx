"""Readers of responses (OpenAI) and generateContent (Google); see items.pxd.

Google accepts names in camelCase and in snake_case.
"""

from headgate_engine.guard.reading cimport (
    Kinds, add_texts, count_words, files, inner_values, is_message, is_system, keep_item, marks, no_clears, parts, strings_in,
    turn_of, words)
from headgate_engine.guard.transcript cimport (
    Fields, LINE, NO_TURN, N_ACTION, N_ACTIONS, N_ARGS, N_ARGUMENTS, N_CANDIDATES, N_CODE, N_CODE_EXECUTION_RESULT,
    N_CODE_EXECUTION_RESULT_SNAKE, N_CONTENT, N_CONTENTS, N_DATA, N_EXECUTABLE_CODE, N_EXECUTABLE_CODE_SNAKE, N_FUNCTION_CALL,
    N_FUNCTION_CALL_SNAKE, N_FUNCTION_RESPONSE, N_FUNCTION_RESPONSE_SNAKE, N_INLINE_DATA,
    N_INLINE_DATA_SNAKE, N_INPUT, N_INSTRUCTIONS, N_MIME_TYPE, N_MIME_TYPE_SNAKE, N_NONE,
    N_OPERATION, N_OUTPUT, N_OUTPUTS, N_PARTS, N_PROMPT, N_QUERIES, N_RESPONSE, N_RESULTS, N_ROLE,
    N_SYSTEM_INSTRUCTION, N_SYSTEM_INSTRUCTION_SNAKE, N_TEXT, N_THOUGHT, N_TOOLS, N_TYPE, N_VARIABLES, ROLE_ASSISTANT,
    ROLE_NONE, ROLE_SYSTEM, ROLE_USER, S_INPUT, S_MESSAGES, S_OUTPUT, S_SYSTEM, SPACE, Span, BodyTexts, Word, word_ends,
    word_is)


# -- responses -----------------------------------------------------------------------------------------------------------
cdef struct ToolItem:
    # Members of an item with the input and the output of a tool.
    const char* kind
    int given[2]
    int gave

cdef ToolItem[12] TOOL_ITEMS = [
    ToolItem(b"function_call", [N_ARGUMENTS, N_NONE], N_NONE),
    ToolItem(b"mcp_call", [N_ARGUMENTS, N_NONE], N_OUTPUT),
    ToolItem(b"mcp_approval_request", [N_ARGUMENTS, N_NONE], N_NONE),
    ToolItem(b"mcp_list_tools", [N_NONE, N_NONE], N_TOOLS),
    ToolItem(b"custom_tool_call", [N_INPUT, N_NONE], N_NONE),
    ToolItem(b"shell_call", [N_ACTION, N_NONE], N_NONE),
    ToolItem(b"local_shell_call", [N_ACTION, N_NONE], N_NONE),
    ToolItem(b"computer_call", [N_ACTION, N_ACTIONS], N_NONE),
    ToolItem(b"web_search_call", [N_ACTION, N_NONE], N_NONE),
    ToolItem(b"apply_patch_call", [N_OPERATION, N_NONE], N_NONE),
    ToolItem(b"code_interpreter_call", [N_CODE, N_NONE], N_OUTPUTS),
    ToolItem(b"file_search_call", [N_QUERIES, N_NONE], N_RESULTS)]


cdef int responses_request(BodyTexts t) except -1 nogil:
    cdef Fields top
    cdef Span span
    cdef int at = 0
    t.fields(0, &top)
    while t.each(&top, N_INSTRUCTIONS, &at, &span):
        input_items(t, span, S_SYSTEM, ROLE_SYSTEM)
    at = 0
    while t.each(&top, N_INPUT, &at, &span):
        input_items(t, span, S_MESSAGES, ROLE_USER)
    t.cut()
    at = 0
    while t.each(&top, N_PROMPT, &at, &span):
        variables(t, span.start)
    return 0


cdef int input_items(BodyTexts t, Span span, int scope, int role) except -1 nogil:
    cdef Span row, element
    cdef int place = 0
    if t.is_text(span.start):
        t.add(scope, span.start, span.stop, t.turn(role, LINE), LINE)
        return 0
    while t.item(span.start, &place, &row, &element):
        input_item(t, row.start)
    return 0


cdef int variables(BodyTexts t, int start) except -1 nogil:
    """Add the variables of a prompt that the provider stores, as a message of the user."""
    cdef Fields prompt, holder
    cdef Span inner, value
    cdef int within, turn
    cdef int at = 0
    t.fields(start, &prompt)
    while t.each(&prompt, N_VARIABLES, &at, &inner):
        within = 0
        turn = t.turn(ROLE_USER, LINE)
        while t.value(inner.start, &within, &value):
            if t.is_text(value.start):
                t.cut()
                t.add(S_MESSAGES, value.start, value.stop, turn, SPACE)
            else:
                t.fields(value.start, &holder)
                strings_in(t, S_MESSAGES, &holder, N_TEXT, turn)
                t.drop(&holder)
    t.drop(&prompt)
    t.cut()
    return 0


cdef int input_item(BodyTexts t, int start) except -1 nogil:
    cdef Fields fields
    cdef Kinds kinds, roles
    cdef Span span
    cdef int turn, scope
    cdef int messages = 0
    cdef int system = 0
    cdef int at = 0
    t.fields(start, &fields)
    words(t, &fields, N_TYPE, is_message, &messages, &kinds)
    if messages or not kinds.count:
        words(t, &fields, N_ROLE, is_system, &system, &roles)
        scope = S_SYSTEM if roles.count and system == roles.count else S_MESSAGES
        turn = turn_of(t, &roles, ROLE_NONE, LINE)
        while t.each(&fields, N_CONTENT, &at, &span):
            parts(t, span, scope, turn, LINE, no_clears(), True)
    if kinds.count > messages:
        t.cut()
        tool_item(t, &fields, &kinds.word)
    t.drop(&fields)
    return 0


cdef int tool_item(BodyTexts t, const Fields* fields, const Word* kind) except -1 nogil:
    cdef Span span
    cdef int i
    cdef int at = 0
    if word_ends(kind, b"_output"):
        while t.each(fields, N_OUTPUT, &at, &span):
            if t.p[span.start] == c"[":
                parts(t, span, S_OUTPUT, NO_TURN, LINE, no_clears(), True)
                t.cut()
            elif not t.is_value(span.start, span.stop, b"null"):
                t.alone(S_OUTPUT, span.start, span.stop)
    for i in range(12):
        if word_is(kind, TOOL_ITEMS[i].kind):
            t.values(S_INPUT, fields, TOOL_ITEMS[i].given[0])
            t.values(S_INPUT, fields, TOOL_ITEMS[i].given[1])
            t.values(S_OUTPUT, fields, TOOL_ITEMS[i].gave)
    return 0


cdef int responses_reply(BodyTexts t) except -1 nogil:
    """Add the parts of the output's messages, one choice for each message."""
    cdef Fields top, fields, part
    cdef Span array, row, element, content, one
    cdef Span whole
    cdef int place, within, inner, turn
    cdef int at = 0
    whole.start = whole.stop = 0
    t.fields(0, &top)
    while t.each(&top, N_OUTPUT, &at, &array):
        place = 0
        while t.item(array.start, &place, &row, &element):
            t.fields(row.start, &fields)
            if count_words(t, &fields, N_TYPE, is_message):
                turn = t.turn(ROLE_ASSISTANT, LINE)
                within = 0
                while t.each(&fields, N_CONTENT, &within, &content):
                    inner = 0
                    while t.item(content.start, &inner, &one, &element):
                        t.fields(one.start, &part)
                        if not add_texts(t, &part, N_TEXT, S_MESSAGES, &whole, turn, LINE, marks(t, &part)):
                            t.cut()
                        t.drop(&part)
            t.drop(&fields)
    return 0


# -- generateContent -----------------------------------------------------------------------------------------------------
cdef int gemini_request(BodyTexts t) except -1 nogil:
    cdef Fields top, fields
    cdef Span span, row, element
    cdef int at, place, i
    cdef int[2] names = [N_SYSTEM_INSTRUCTION, N_SYSTEM_INSTRUCTION_SNAKE]
    t.fields(0, &top)
    for i in range(2):
        at = 0
        while t.each(&top, names[i], &at, &span):
            t.fields(span.start, &fields)
            gemini_parts(t, &fields, S_SYSTEM, t.turn(ROLE_SYSTEM, LINE))
            t.drop(&fields)
    at = 0
    while t.each(&top, N_CONTENTS, &at, &span):
        # A single content may lack the list around it.
        if t.p[span.start] == c"{":
            gemini_content(t, span.start)
    at = 0
    while t.each(&top, N_CONTENTS, &at, &span):
        place = 0
        while t.item(span.start, &place, &row, &element):
            gemini_content(t, row.start)
    t.cut()
    return 0


cdef bint no_test(const Word* word) noexcept nogil:
    return False


cdef int gemini_content(BodyTexts t, int start) except -1 nogil:
    cdef Fields fields
    cdef Kinds roles
    cdef int passed = 0
    t.fields(start, &fields)
    words(t, &fields, N_ROLE, no_test, &passed, &roles)
    gemini_parts(t, &fields, S_MESSAGES, turn_of(t, &roles, ROLE_USER, LINE))
    t.drop(&fields)
    return 0


cdef int gemini_parts(BodyTexts t, const Fields* content, int scope, int turn) except -1 nogil:
    cdef Span span, row, element
    cdef int place
    cdef int at = 0
    element.start = element.stop = 0
    while t.each(content, N_PARTS, &at, &span):
        if t.p[span.start] == c"{":
            gemini_part(t, span.start, &element, scope, turn)
    at = 0
    while t.each(content, N_PARTS, &at, &span):
        place = 0
        while t.item(span.start, &place, &row, &element):
            gemini_part(t, row.start, &element, scope, turn)
    return 0


cdef int inline_file(BodyTexts t, const Fields* fields, int name, int scope, int turn) except -1 nogil:
    """Add a text file that a part has."""
    cdef Fields found
    cdef Span span
    cdef int at = 0
    while t.each(fields, name, &at, &span):
        t.fields(span.start, &found)
        files(t, &found, N_DATA, N_MIME_TYPE, scope, turn)
        files(t, &found, N_DATA, N_MIME_TYPE_SNAKE, scope, turn)
        t.drop(&found)
    return 0


cdef int gemini_part(BodyTexts t, int start, const Span* element, int scope, int turn) except -1 nogil:
    cdef Fields fields
    cdef int at, found
    cdef int first = t.piece_count
    t.fields(start, &fields)
    if is_thought(t, &fields):
        t.cut()
    else:
        found = add_texts(t, &fields, N_TEXT, scope, element, turn, LINE, no_clears())
        if not found:
            t.cut()
        for at in range(2):
            inline_file(t, &fields, N_INLINE_DATA if at == 0 else N_INLINE_DATA_SNAKE, scope, turn)
        inner_values(t, &fields, N_FUNCTION_CALL, N_ARGS, S_INPUT)
        inner_values(t, &fields, N_FUNCTION_CALL_SNAKE, N_ARGS, S_INPUT)
        inner_values(t, &fields, N_EXECUTABLE_CODE, N_CODE, S_INPUT)
        inner_values(t, &fields, N_EXECUTABLE_CODE_SNAKE, N_CODE, S_INPUT)
        inner_values(t, &fields, N_FUNCTION_RESPONSE, N_RESPONSE, S_OUTPUT)
        inner_values(t, &fields, N_FUNCTION_RESPONSE_SNAKE, N_RESPONSE, S_OUTPUT)
        inner_values(t, &fields, N_CODE_EXECUTION_RESULT, N_OUTPUT, S_OUTPUT)
        inner_values(t, &fields, N_CODE_EXECUTION_RESULT_SNAKE, N_OUTPUT, S_OUTPUT)
        keep_item(t, first, found)
    t.drop(&fields)
    return 0


cdef bint is_thought(BodyTexts t, const Fields* fields) noexcept nogil:
    """Return whether a part is the model's reasoning and no text of its answer."""
    cdef Span span
    cdef int at = 0
    cdef bint found = False
    while t.each(fields, N_THOUGHT, &at, &span):
        if not t.is_value(span.start, span.stop, b"true"):
            return False
        found = True
    return found


cdef int gemini_reply(BodyTexts t) except -1 nogil:
    cdef Fields top, candidate
    cdef Span array, row, element, inner
    cdef int place, within, turn
    cdef int at = 0
    t.fields(0, &top)
    while t.each(&top, N_CANDIDATES, &at, &array):
        place = 0
        while t.item(array.start, &place, &row, &element):
            turn = t.turn(ROLE_ASSISTANT, LINE)
            t.fields(row.start, &candidate)
            within = 0
            while t.each(&candidate, N_CONTENT, &within, &inner):
                said_parts(t, inner.start, turn)
            t.drop(&candidate)
    return 0


cdef int said_parts(BodyTexts t, int start, int turn) except -1 nogil:
    cdef Fields content, fields
    cdef Span array, row, element
    cdef Span whole
    cdef int place
    cdef int at = 0
    whole.start = whole.stop = 0
    t.fields(start, &content)
    while t.each(&content, N_PARTS, &at, &array):
        place = 0
        while t.item(array.start, &place, &row, &element):
            t.fields(row.start, &fields)
            if is_thought(t, &fields) or not add_texts(t, &fields, N_TEXT, S_MESSAGES, &whole, turn, LINE, no_clears()):
                t.cut()
            t.drop(&fields)
    t.drop(&content)
    return 0
