"""Settings of the delivery."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

PORT: Final = 9978
AUDIENCE: Final = "headgate.dev/controller"
Mode = Literal["plaintext", "tls", "either"]
# What a replica says that does not lead: data planes ask again soon, and come to another one.
ELSEWHERE: Final = "another replica of the controller leads"


class DeliverySettings(NamedTuple):
    """`mode`: what the port speaks; with `either`, the first byte of a connection decides. `authenticate`: streams
    need the token of their Gateway's service account, for `audience`. `plain_secrets`: secrets may go over a connection
    without TLS, as in a trial on one machine. `namespace`, `secret`: where the authority's certificate is kept.
    `names`: host names and addresses that the certificate of the server is for. `streams_per_s`: how many may begin.
    """

    host: str = "::"
    port: int = PORT
    mode: Mode = "tls"
    authenticate: bool = True
    audience: str = AUDIENCE
    plain_secrets: bool = False
    namespace: str = "headgate-system"
    secret: str = "headgate-xds-ca"  # noqa: S105 (a name)
    names: tuple[str, ...] = ("localhost",)
    streams_per_s: float = 100.0
