"""Credentials for services of cloud providers."""

from __future__ import annotations

from typing import Final, Literal

from headgate.document.lazy_dataclass import dataclass
from headgate.document.secret import Secret
from headgate.ir.policy.location import Location
from headgate.ir.secret import SecretRef

# The scope of tokens for Azure AI Foundry.
FOUNDRY_SCOPE: Final = "https://ai.azure.com/.default"


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsKeyPair:
    """AWS access keys that are given in the configuration. `token` is the session token, if any."""

    access: Secret
    secret: Secret
    token: Secret | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsTag:
    """A session tag, with a fixed `value` or an `expression` for each request.

    Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/id_session-tags.html.
    """

    key: str
    value: str = ""
    expression: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsRole:
    """A role that is assumed with AWS STS. `session` is the session name; `expression` gives it for each request.

    Source: https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html.
    """

    arn: str
    session: str = "headgate"
    expression: str | None = None
    tags: tuple[AwsTag, ...] = ()

    @property
    def varies(self) -> bool:
        """True if the session depends on the request."""
        return self.expression is not None or any(tag.expression is not None for tag in self.tags)


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsAuth:
    """AWS Signature Version 4 (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html).

    `keys` None means the credentials of the environment. `region` and `service` None are derived from the host name.
    """

    region: str | None = None
    service: str | None = None
    keys: AwsKeyPair | None = None
    role: AwsRole | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GcpAuth:
    """An access token or ID token of Google.

    `audience` is that of ID tokens; None means `https://<host>`. `credential` is a JSON key document; None means the
    application default credentials (https://cloud.google.com/docs/authentication/application-default-credentials).
    """

    kind: Literal["accessToken", "idToken"] = "accessToken"
    audience: str | None = None
    credential: SecretRef | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AzureClient:
    """An application in Microsoft Entra ID with a client secret."""

    tenant: str
    client: str
    secret: Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class AzureAuth:
    """A token of Microsoft Entra ID.

    `identity` is the query parameter (name, value) that selects one of several managed identities. `scope` None means
    the scope of Azure OpenAI, or of Azure AI Foundry if that is the provider.
    """

    kind: Literal["clientSecret", "managedIdentity", "workloadIdentity", "developerImplicit", "implicit"] = "implicit"
    client: AzureClient | None = None
    identity: tuple[str, str] | None = None
    scope: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CopilotAuth:
    """A Copilot token, which GitHub issues in exchange for a developer's token from the environment."""


CloudAuth = AwsAuth | GcpAuth | AzureAuth | CopilotAuth
# The location of cloud tokens in a request.
BEARER = Location()
