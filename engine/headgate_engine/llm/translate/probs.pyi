from typing import Any

def chat_probs(value: object) -> list[dict[str, Any]]:
    """Return the tokens of a list of chat completions or Responses; entries that are none are left out."""

def gemini_probs(value: object) -> list[dict[str, Any]]:
    """Return the tokens of a `logprobsResult`."""

def gemini_result(probs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a `logprobsResult`."""

def text_probs(probs: list[dict[str, Any]], offset: int) -> dict[str, Any]:
    """Return `logprobs` of a legacy completion. offset: where the first token begins, in characters of the text."""
