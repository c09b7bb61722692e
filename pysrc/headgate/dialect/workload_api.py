"""Messages of the SPIFFE Workload API, as far as X.509-SVIDs need them.

Source: https://github.com/spiffe/spiffe/blob/main/standards/SPIFFE_Workload_API.md, section 5 and appendix A.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from google.protobuf.message import DecodeError

from headgate.dialect.protobuf import MessageField, classes_of, file_of

FETCH_X509_SVID: Final = "/SpiffeWorkloadAPI/FetchX509SVID"
# Without it a server refuses: requests that a program was tricked into have none (SPIFFE_Workload_Endpoint section 6).
SECURITY_HEADER: Final = ("workload.spiffe.io", "true")

# A map is a list of entries (https://protobuf.dev/programming-guides/encoding/#maps). The package's name is our own: on
# the wire there is none.
_CLASSES: Final = classes_of(
    file_of(
        "headgate/workload_api.proto",
        "headgate.workload_api",
        {
            "X509SVIDRequest": (),
            "X509SVID": (
                MessageField(1, "spiffe_id", "string"),
                MessageField(2, "x509_svid", "bytes"),
                MessageField(3, "x509_svid_key", "bytes"),
                MessageField(4, "bundle", "bytes"),
                MessageField(5, "hint", "string"),
            ),
            "FederatedBundle": (MessageField(1, "key", "string"), MessageField(2, "value", "bytes")),
            "X509SVIDResponse": (
                MessageField(1, "svids", "X509SVID", "repeated"),
                MessageField(2, "crl", "bytes", "repeated"),
                MessageField(3, "federated_bundles", "FederatedBundle", "repeated"),
            ),
        },
        {},
    )
)


class GivenSvid(NamedTuple):
    """The first X.509-SVID of an answer, which is the default one. All is DER; `key` is PKCS #8.

    `federated` are the authorities of other trust domains by their SPIFFE IDs.
    """

    spiffe_id: str
    certificates: bytes
    key: bytes
    bundle: bytes
    federated: dict[str, bytes]


def request() -> bytes:
    """Return the request of FetchX509SVID."""
    return bytes(_CLASSES["X509SVIDRequest"]().SerializeToString())


def given_svid(message: bytes) -> GivenSvid:
    """Return the default SVID of an answer. Raises ValueError if there is none."""
    answer = _CLASSES["X509SVIDResponse"]()
    try:
        answer.ParseFromString(message)
    except DecodeError:
        raise ValueError("the response is not an X509SVIDResponse") from None
    if not answer.svids:
        raise ValueError("the answer has no X.509-SVID")
    first = answer.svids[0]
    return GivenSvid(
        first.spiffe_id,
        first.x509_svid,
        first.x509_svid_key,
        first.bundle,
        {one.key: one.value for one in answer.federated_bundles},
    )
