"""The texts in LLM requests and replies with their byte offsets, so that they can be changed in place."""
