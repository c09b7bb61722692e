from __future__ import annotations

import asyncio

from headgate.document.secret import Secret
from headgate.ir.policy.cloud_auth import AwsAuth, AwsKeyPair, AwsRole, AzureAuth, GcpAuth
from headgate.net.tasks import spawn
from headgate.policy.cloud import store as module
from headgate.policy.cloud.store import CredentialStore

KEYS = AwsKeyPair(access=Secret("A"), secret=Secret("B"))
ROLE = AwsRole(arn="arn:aws:iam::123456789012:role/a", expression="jwt.sub")


def test_equal_credentials_are_one_and_outlast_a_reload() -> None:
    async def main() -> None:
        first = CredentialStore(spawn)
        one = first.refresher(AwsAuth(keys=KEYS, region="eu-west-1", service="s3"))
        assert first.refresher(AwsAuth(keys=KEYS, region="us-east-1", service="lambda")) is one     # keys sign everywhere
        assert first.refresher(AwsAuth(keys=AwsKeyPair(access=Secret("A"), secret=Secret("C")))) is not one
        other, gone = first.refresher(GcpAuth()), first.refresher(AzureAuth())
        second = CredentialStore(spawn, first)
        assert second.calls is first.calls
        assert second.refresher(GcpAuth()) is other
        first.close_unused(second)
        assert second.refresher(AzureAuth()) is not gone
        second.close()
        first.close()

    asyncio.run(main())


def test_sessions_of_roles_are_kept_and_not_without_number(monkeypatch) -> None:
    monkeypatch.setattr(module, "MAX_SESSIONS", 2)

    async def main() -> None:
        auth = AwsAuth(keys=KEYS, region="eu-west-1", role=ROLE)
        store = CredentialStore(spawn)
        ada, bob = store.session(auth, "ada", ()), store.session(auth, "bob", ())
        assert store.session(auth, "ada", ()) is ada
        assert store.session(auth, "ada", (("k", "v"),)) is not ada              # bob was used longest ago
        assert store.session(auth, "ada", ()) is ada
        assert store.session(auth, "bob", ()) is not bob
        store.close()

    asyncio.run(main())
