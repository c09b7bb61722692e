from headgate_engine.context.request import RequestContext
from headgate_engine.expr.program import Program

KINDS: dict[str, int]

class CredentialLocation:
    """A place of a credential in requests.

    kind: header, query, cookie or expression. prefix: of a header's value, in any case. program: the expression.
    """

    def __init__(self, kind: str, name: str = "", prefix: str = "", program: Program | None = None) -> None: ...
    @property
    def kind(self) -> int: ...
    def take(self, ctx: RequestContext) -> bytes | None:
        """Remove the credential from the request and return it, None if there is none or more than one."""
    def set(self, ctx: RequestContext, value: bytes) -> None:
        """Set the credential, replacing the client's."""
