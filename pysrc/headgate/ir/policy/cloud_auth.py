"""Credentials of the clouds."""

from __future__ import annotations

from typing import Literal

from headgate.document.lazy_dataclass import dataclass
from headgate.document.secret import Secret
from headgate.ir.policy.location import Location
from headgate.ir.secret import SecretRef


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsKeyPair:
    """Keys written into the file."""

    access: Secret
    secret: Secret
    token: Secret | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsTag:
    """A session tag: `value` as it is, or the text of an `expression`."""

    key: str
    value: str = ""
    expression: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsRole:
    """A role that is assumed. `session`: its name; `expression`: what gives it for each request."""

    arn: str
    session: str = "headgate"
    expression: str | None = None
    tags: tuple[AwsTag, ...] = ()

    @property
    def varies(self) -> bool:
        """Whether the session depends on the request."""
        return self.expression is not None or any(tag.expression is not None for tag in self.tags)


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsAuth:
    """Signature Version 4. Without `keys` those of the environment sign. `region`, `service`: None as the host says."""

    region: str | None = None
    service: str | None = None
    keys: AwsKeyPair | None = None
    role: AwsRole | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GcpAuth:
    """A token of Google. `audience` is of ID tokens, None means `https://<host>`. `credential`: a JSON key document;
    None: the application default credentials.
    """

    kind: Literal["accessToken", "idToken"] = "accessToken"
    audience: str | None = None
    credential: SecretRef | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AzureClient:
    """An application with a secret."""

    tenant: str
    client: str
    secret: Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class AzureAuth:
    """A token of Microsoft Entra. `identity`: (name of the parameter, value) of a managed identity that is not the only
    one. `scope`: None for the one of Azure OpenAI, or of Azure AI Foundry where the provider is that.
    """

    kind: Literal["clientSecret", "managedIdentity", "workloadIdentity", "developerImplicit", "implicit"] = "implicit"
    client: AzureClient | None = None
    identity: tuple[str, str] | None = None
    scope: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CopilotAuth:
    """A token that GitHub gives for that of the developer whom the environment names."""


CloudAuth = AwsAuth | GcpAuth | AzureAuth | CopilotAuth
# Where tokens of clouds go.
BEARER = Location()
