from collections.abc import Iterable
from typing import NoReturn

from headgate_engine.plan.step import Step
from headgate_engine.steps.held import HeldCredential

UNSIGNED: tuple[bytes, ...]

class AwsKeys:
    """Keys that sign. access: the key id. token: that of temporary credentials. ValueError, without the values, for
    what cannot stand in a header.
    """

    def __init__(self, access: bytes, secret: bytes, token: bytes | None = None) -> None: ...
    @property
    def access(self) -> bytes: ...
    def same_as(self, other: AwsKeys | None) -> bool:
        """They sign alike."""
    def __reduce__(self) -> NoReturn: ...

class AwsSignatureStep(Step):
    """Signs the request as it is. held: its value is AwsKeys; None: those of RequestContext.signing_keys."""

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
    """The headers of a request with those that sign it. AWS Signature Version 4; the path is encoded once more, as all
    services but S3 want it. now: Unix time.
    """
