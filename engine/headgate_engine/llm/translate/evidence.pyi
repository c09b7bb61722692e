from typing import Any

class Citation:
    """One citation. `start`, `end`: of the characters of the reply's text that it stands for.

    `url`: "" for a document of the request, whose `place` is told as Messages do.
    """

    def __init__(
        self,
        url: str,
        title: str,
        start: int,
        end: int,
        quoted: str = ...,
        place: dict[str, Any] | None = ...,
    ) -> None: ...
    @property
    def url(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def quoted(self) -> str: ...
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def place(self) -> dict[str, Any] | None: ...

class RanTool:
    """A tool that the vendor has run itself. `sources`: (URL, title) of what it found; `output`: what it printed.

    `server`: of an MCP tool, the label of its server; "" for any other.
    """

    server: str

    def __init__(
        self,
        id: str,
        name: str,
        input: dict[str, Any],
        *,
        sources: list[tuple[str, str]] | None = ...,
        output: str = ...,
        failed: bool = ...,
    ) -> None: ...
    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def input(self) -> dict[str, Any]: ...
    @property
    def sources(self) -> list[tuple[str, str]]: ...
    @property
    def output(self) -> str: ...
    @property
    def failed(self) -> bool: ...

def is_ran(kind: object) -> bool:
    """Return whether a block of Messages is a call that the vendor has answered itself."""

def is_result(kind: object) -> bool:
    """Return whether a block of Messages is the result of such a call."""

def messages_citation(value: object, start: int, end: int) -> Citation | None:
    """Return a citation of a Messages text block, None for one of an unknown kind. start, end: of the block's text."""

def url_annotation(value: object, base: int) -> Citation | None:
    """Return a `url_citation` of chat completions or Responses, None for others. base: where its text begins."""

def converse_citation(value: object, start: int, end: int) -> Citation | None:
    """Return a citation of Converse."""

def grounding_of(candidate: dict[str, Any], text: bytes, ident: str) -> tuple[list[Citation], RanTool | None]:
    """Return what Gemini's `groundingMetadata` says of a text, and the search. Offsets there are of bytes."""

def messages_ran(use: dict[str, Any], result: dict[str, Any] | None) -> RanTool:
    """Return a tool by its `server_tool_use` (or `mcp_tool_use`) and the block of its result, None without one."""

def responses_ran(item: dict[str, Any]) -> RanTool | None:
    """Return a tool by its item of Responses, None for an item of another kind."""

def code_ran(id: str, language: str, code: str, result: dict[str, Any] | None) -> RanTool:
    """Return code that Gemini has run."""

def chat_annotation(citation: Citation) -> dict[str, Any] | None:
    """Return an entry of `annotations` of chat completions, None where these have no place for it."""

def responses_annotation(citation: Citation, base: int) -> dict[str, Any] | None:
    """Return an annotation of Responses, None where these have no place for it. base: where its part begins."""

def messages_citation_of(citation: Citation) -> dict[str, Any]:
    """Return a citation of Messages."""

def converse_citation_of(citation: Citation) -> dict[str, Any]:
    """Return a citation of Converse."""

def messages_blocks(tool: RanTool, ident: str) -> list[dict[str, Any]]:
    """Return the blocks of a tool in Messages: the call and its result; [] where these have no place for it."""

def responses_item(tool: RanTool, ident: str) -> dict[str, Any] | None:
    """Return the item of a tool in Responses, None where these have no place for it."""
