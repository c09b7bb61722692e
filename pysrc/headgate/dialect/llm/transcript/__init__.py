"""What persons and models say in LLM requests and replies, by byte offsets, so that it can be changed in place."""
