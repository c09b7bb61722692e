# No C face: READERS gives expressions their `llm.*`.
