"""Key sets that are fetched."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from headgate.ir.policy.document_source import DocumentSource
from headgate.policy.key_sets import KeyStore


class Answer:
    status = 200

    def __init__(self, document: bytes) -> None:
        self._document = document

    async def read(self, _limit: int) -> bytes:
        return self._document

    async def aclose(self) -> None:
        pass


class Server:
    """Gives out one document after the other."""

    def __init__(self, documents: list[bytes]) -> None:
        self._documents = documents

    async def request(self, *_: Any) -> Answer:
        return Answer(self._documents.pop(0))


def key_of(kind: str) -> str:
    if kind == "rsa":
        return jwt.algorithms.RSAAlgorithm.to_jwk(rsa.generate_private_key(65537, 2048).public_key())
    if kind == "ec":
        return jwt.algorithms.ECAlgorithm.to_jwk(ec.generate_private_key(ec.SECP256R1()).public_key())
    return jwt.algorithms.OKPAlgorithm.to_jwk(ed25519.Ed25519PrivateKey.generate().public_key())


@pytest.mark.parametrize("kind", ["rsa", "ec", "okp"])
@pytest.mark.parametrize("kid", ["one", None])
def test_another_key_under_the_same_id_is_another_key(kind: str, kid: str | None) -> None:
    first, second = ({**json.loads(key_of(kind)), **({} if kid is None else {"kid": kid})} for _ in range(2))
    documents = [json.dumps({"keys": [one]}).encode() for one in (first, first, second, second)]
    changes: list[int] = []

    async def fetched() -> None:
        def spawn(_name: str, work: Any) -> asyncio.Task[None]:
            return asyncio.get_running_loop().create_task(work)

        store = KeyStore(DocumentSource.remote("https://idp.test/keys"), [Server(documents)], spawn)  # type: ignore[list-item]
        for _ in range(4):
            store.verified.remember(b"token", {}, store, 60)
            await store.refetch()
            if not len(store.verified):
                changes.append(len(documents))

    asyncio.run(fetched())
    assert changes == [3, 1], "the first one, and the one that takes its place"
