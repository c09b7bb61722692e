# Plain chats: requests and replies of texts and tool calls, which are translated without the general translations of
# headgate.dialect.llm. What has any other member is left to those: None.

# The turns of chat completions for a turn of Messages.
# longest: characters of an id of a tool call that the provider takes as it is; 0: all ids stay as they are; -1: turns with
# calls are not plain.
cdef list plain_turn(dict message, Py_ssize_t longest)

# The text of a text block or part without further members, None for anything else.
cdef str text_of(object block)
