# Plain turns, of texts and tool calls, on the way to Messages and Converse: translated here instead of block by block by
# headgate.dialect.llm. A turn with any other member is left to the general translations: None.
