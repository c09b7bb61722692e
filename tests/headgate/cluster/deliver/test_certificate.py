"""The certificate of the delivery."""

from __future__ import annotations

import asyncio
import base64
import ssl
from datetime import UTC, datetime, timedelta

import pytest
import trustme
from cryptography import x509
from tests.end_to_end.delivery_rig import LOCAL, FakeApi

from headgate.cluster.calls import ApiError
from headgate.cluster.deliver.certificate import Serving, ServingCertificate, context_of, new_authority, serving_from

SETTINGS = LOCAL._replace(mode="tls", namespace="system", secret="ca")
PATH = "/api/v1/namespaces/system/secrets/ca"


def shake_hands(serving: Serving, name: str) -> None:
    """Connect in memory; raises ssl.SSLError."""
    trusting = ssl.create_default_context(cadata=serving.authority.decode())
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusting.wrap_bio(to_client, to_server, server_hostname=name)
    server = context_of(serving).wrap_bio(to_server, to_client, server_side=True)
    pending = [client, server]
    for _ in range(10):
        for side in list(pending):
            try:
                side.do_handshake()
                pending.remove(side)
            except ssl.SSLWantReadError:
                pass
    assert not pending


def test_an_authority_is_made_and_kept() -> None:
    api = FakeApi({})
    first, second = ServingCertificate(api, SETTINGS), ServingCertificate(api, SETTINGS)
    asyncio.run(first.begin())
    asyncio.run(second.begin())
    assert first.authority == second.authority is not None
    certificate = x509.load_pem_x509_certificate(base64.b64decode(api.secrets[PATH]["data"]["ca.crt"]))
    assert timedelta(days=3649) < certificate.not_valid_after_utc - datetime.now(UTC) < timedelta(days=3651)


def test_of_two_replicas_one_makes_the_secret() -> None:
    class Late(FakeApi):
        """Another replica makes the Secret between the look and the attempt."""

        async def create(self, path: str, document: dict[str, object]) -> dict[str, object]:
            certificate, key = new_authority(datetime.now(UTC))
            data = {"ca.crt": base64.b64encode(certificate).decode(), "ca.key": base64.b64encode(key).decode()}
            self.secrets[PATH] = {"data": data}
            raise ApiError(409, "AlreadyExists", "there is one")

    api = Late({})
    served = ServingCertificate(api, SETTINGS)
    asyncio.run(served.begin())
    assert served.authority == base64.b64decode(api.secrets[PATH]["data"]["ca.crt"])


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "xds.headgate-system.svc"])
@pytest.mark.parametrize("keys", [("ca.crt", "ca.key"), ("tls.crt", "tls.key")])
def test_an_authority_signs_for_all_names(name: str, keys: tuple[str, str]) -> None:
    data = dict(zip(keys, new_authority(datetime.now(UTC)), strict=True))
    shake_hands(serving_from(data, ("localhost", "127.0.0.1", "xds.headgate-system.svc")), name)
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(serving_from(data, ("localhost", "127.0.0.1", "xds.headgate-system.svc")), "other.test")


def test_a_pair_of_the_user_is_served() -> None:
    authority = trustme.CA()
    leaf = authority.issue_cert("mine.test")
    data = {
        "tls.crt": leaf.cert_chain_pems[0].bytes(), "tls.key": leaf.private_key_pem.bytes(),
        "ca.crt": authority.cert_pem.bytes(),
    }  # fmt: skip
    shake_hands(serving_from(data, ("localhost",)), "mine.test")
    data["tls.key"] = new_authority(datetime.now(UTC))[1]
    with pytest.raises(ValueError, match="cannot be used"):
        context_of(serving_from(data, ("localhost",)))


@pytest.mark.parametrize("data", [{}, {"ca.crt": b"x"}, {"ca.crt": b"x", "ca.key": b"y"}, {"tls.crt": b"x", "tls.key": b"y"}])
def test_what_is_no_certificate_is_refused(data: dict[str, bytes]) -> None:
    with pytest.raises(ValueError):
        serving_from(data, ("localhost",))


def test_a_secret_that_is_not_base64_is_refused() -> None:
    api = FakeApi({})
    api.secrets[PATH] = {"data": {"ca.crt": "%%%"}}
    with pytest.raises(ValueError, match="Base64"):
        asyncio.run(ServingCertificate(api, SETTINGS).begin())
