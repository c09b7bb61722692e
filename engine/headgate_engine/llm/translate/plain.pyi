from typing import Any

from headgate_engine.llm.translate.counts import UsageCounts

TIERS_FOR_MESSAGES: dict[str, str]

def chat_turns(message: dict[str, Any], longest: int) -> list[dict[str, Any]] | None:
    """Return the turns of chat completions for a turn of Messages, None if it holds more than texts and tool calls.

    longest: characters of an id of a tool call that the provider takes as it is; 0: all stay; -1: calls are not plain.
    """

def chat_request(body: dict[str, Any], model: str, longest: int) -> tuple[dict[str, Any], bool] | None:
    """Return the body of chat completions for a request in Messages, and whether it streams; None for one not plain."""

def message_reply(
    body: dict[str, Any], model: str, ident: str, names: dict[str, str], usage: UsageCounts | None
) -> dict[str, Any] | None:
    """Return the message for a reply of chat completions, None if it is not plain.

    model, ident: for what the provider does not tell. names: the client's names of tools. usage: of the reply.
    """
