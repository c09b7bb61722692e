from collections.abc import Iterable
from typing import NoReturn

from headgate_engine.plan.step import Step
from headgate_engine.steps.held import HeldCredential

UNSIGNED: tuple[bytes, ...]

class AwsKeys:
    """Keys for signatures. access: the key id. token: the session token of temporary credentials.

    Raises ValueError, without the values, if one is invalid in a header.
    """

    def __init__(self, access: bytes, secret: bytes, token: bytes | None = None) -> None: ...
    @property
    def access(self) -> bytes: ...
    def __reduce__(self) -> NoReturn: ...

class AwsSignatureStep(Step):
    """Signs the final request. held: its value is AwsKeys; None: use RequestContext.signing_keys."""

    def __init__(self, held: HeldCredential | None, *, region: str, service: str) -> None: ...

def sign(
    method: str,
    target: str,
    authority: str,
    headers: Iterable[tuple[str, str]],
    body: bytes | None,
    keys: AwsKeys,
    *,
    region: str,
    service: str,
    now: float | None = None,
) -> list[tuple[str, str]]:
    """Return the headers of a request with those of its signature, for requests that Python code sends.

    AWS Signature Version 4. The path is encoded once more, as all services except S3 require. now: Unix time in
    seconds.
    """
