from typing import Any

def messages_turn(message: dict[str, Any]) -> tuple[str, list[dict[str, Any]]] | None:
    """Return the role and the blocks in Messages for a message of chat completions, None if it is not plain.

    Blank texts are left out, as the provider refuses them. The role of a tool's result is `user`.
    """

def converse_turn(
    message: dict[str, Any], names: dict[str, str], used: dict[str, None]
) -> tuple[list[dict[str, Any]], int] | None:
    """Return the blocks of Converse for a turn of Messages and the number of tool results, None if it is not plain.

    names: the provider's names of tools by the client's; a call of any other tool is not plain. used: gets the
    provider's names of called tools, in order.
    """
