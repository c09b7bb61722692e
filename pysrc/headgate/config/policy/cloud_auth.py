"""`backendAuth.aws`, `.gcp` and `.azure` to the IR and back."""

from __future__ import annotations

import json
import re
from typing import Any, Final, Literal, cast

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.extras import check_cloud
from headgate.config.policy.expression import checked
from headgate.document.secret import REDACTED
from headgate.errors import Problem
from headgate.ir.policy.cloud_auth import (
    AwsAuth,
    AwsKeyPair,
    AwsRole,
    AwsTag,
    AzureAuth,
    AzureClient,
    CloudAuth,
    GcpAuth,
)

REGION: Final = re.compile(r"[a-z0-9-]{1,63}")
SERVICE: Final = re.compile(r"[a-z0-9-]{1,63}")
ROLE: Final = re.compile(r"arn:[a-z0-9-]+:iam::[0-9]{12}:role/[\x21-\x7e]{1,512}")
# AWS STS, AssumeRole: RoleSessionName, Tag.
SESSION: Final = re.compile(r"[A-Za-z0-9_=,.@-]{2,64}")
MAX_TAG_KEY: Final = 128
MAX_TAG_VALUE: Final = 256
# Names of the file to those of the token endpoints of managed identities.
IDENTITIES: Final = {"clientId": "client_id", "objectId": "object_id", "resourceId": "msi_res_id"}
EXPLICIT: Final = ("clientSecret", "managedIdentity", "workloadIdentity")
KEY_KINDS: Final = (
    "service_account", "authorized_user", "external_account", "external_account_authorized_user",
    "impersonated_service_account",
)  # fmt: skip


def parse(context: Context, record: Record) -> CloudAuth | None:
    """Return the cloud credentials of a `backendAuth`, None when it has none or they are at fault."""
    found: CloudAuth | None
    if record.get("aws") is not None:
        key, found = "aws", aws(context, record["aws"])
    elif record.get("gcp") is not None:
        key, found = "gcp", _gcp(context, record["gcp"])
    else:
        return None if record.get("azure") is None else _azure(context, record["azure"])
    check_cloud(context, record, key, found)
    return found


def _fits(context: Context, record: Record, key: str, form: re.Pattern[str], what: str) -> str | None:
    text: str | None = record.get(key)
    if text is not None and not form.fullmatch(text):
        context.fault(Problem.VALUE, record, key, what)
        return None
    return text


def aws(context: Context, record: Record) -> AwsAuth:
    """Return the keys of AWS, or how they are found."""
    small = "consists of lower-case letters, digits and '-', at most 63 of them"
    keys = None
    if record.get("accessKeyId") is not None and record.get("secretAccessKey") is not None:
        keys = AwsKeyPair(
            access=record["accessKeyId"], secret=record["secretAccessKey"], token=record.get("sessionToken")
        )
    role = record.get("assumeRole")
    return AwsAuth(
        region=_fits(context, record, "region", REGION, f"a region {small}"),
        service=_fits(context, record, "serviceName", SERVICE, f"a service {small}"),
        keys=keys,
        role=None if role is None else _role(context, role),
    )


def _role(context: Context, record: Record) -> AwsRole:
    _fits(context, record, "roleArn", ROLE, "not the ARN of a role")
    session, expression = record.get("sessionName"), None
    if isinstance(session, Record):
        expression, session = checked(context, session, "expression", "backend"), None
    elif session is not None:
        _fits(context, record, "sessionName", SESSION, "a session name must have 2 to 64 letters, digits and _=,.@-")
    tags = []
    for tag in record.records("tags"):
        key, value = tag["key"], tag.get("value")
        if not 0 < len(key) <= MAX_TAG_KEY:
            context.fault(Problem.VALUE, tag, "key", f"the key of a tag must have 1 to {MAX_TAG_KEY} characters")
        if (value is None) == (tag.get("expression") is None):
            context.fault(Problem.CONFLICT, tag, "", "a tag needs either 'value' or 'expression'")
        if value is not None and len(value) > MAX_TAG_VALUE:
            context.fault(Problem.VALUE, tag, "value", f"the value of a tag has at most {MAX_TAG_VALUE} characters")
        text = checked(context, tag, "expression", "backend") if tag.get("expression") is not None else None
        tags.append(AwsTag(key=key, value=value or "", expression=text))
    names = [tag.key for tag in tags]
    if len(set(names)) < len(names):
        context.fault(Problem.CONFLICT, record, "tags", "a tag is defined twice")
    found = AwsRole(arn=record["roleArn"], expression=expression, tags=tuple(tags))
    return found if session is None else AwsRole(arn=found.arn, session=session, tags=found.tags)


def _gcp(context: Context, record: Record) -> GcpAuth | None:
    kind = cast("Literal['accessToken', 'idToken']", record.get("type") or "accessToken")
    credential = context.secret(record, "credential", lines=True)
    if credential is not None:
        try:
            found = json.loads(credential.secret.reveal())
            usable = isinstance(found, dict) and found.get("type") in KEY_KINDS
        except (ValueError, RecursionError):
            usable = False
        if not usable:
            message = f"not the JSON of a credential, whose type must be one of {', '.join(KEY_KINDS)}"
            context.fault(Problem.VALUE, record, "credential", message)
            return None
    elif record.get("credential") is not None:
        return None
    return GcpAuth(kind=kind, audience=record.get("audience"), credential=credential)


def _azure(context: Context, record: Record) -> AzureAuth | None:
    explicit = record.get("explicitConfig")
    if explicit is None:
        return AzureAuth(kind="developerImplicit" if record.get("developerImplicit") is not None else "implicit")
    kind = next((name for name in EXPLICIT if explicit.get(name) is not None), None)
    if kind is None:
        return None
    inner = explicit[kind]
    if kind == "clientSecret":
        client = AzureClient(tenant=inner["tenant_id"], client=inner["client_id"], secret=inner["client_secret"])
        if not re.fullmatch(r"[A-Za-z0-9.-]{1,128}", client.tenant):
            context.fault(Problem.VALUE, inner, "tenant_id", "a tenant must be an id or a domain name")
        return AzureAuth(kind="clientSecret", client=client)
    if kind == "workloadIdentity":
        return AzureAuth(kind="workloadIdentity")
    chosen = inner.get("userAssignedIdentity")
    name = None if chosen is None else next((name for name in IDENTITIES if chosen.get(name) is not None), None)
    return AzureAuth(
        kind="managedIdentity", identity=None if name is None or chosen is None else (IDENTITIES[name], chosen[name])
    )


def dump(auth: CloudAuth) -> dict[str, Any]:
    """Return the form of the configuration dump."""
    if isinstance(auth, AwsAuth):
        return {"aws": shown_aws(auth)}
    if isinstance(auth, GcpAuth):
        found: dict[str, Any] = {"type": auth.kind}
        if auth.audience is not None:
            found["audience"] = auth.audience
        if auth.credential is not None:
            found["credential"] = REDACTED
        return {"gcp": found}
    assert isinstance(auth, AzureAuth)        # the other one is a word, and told above
    return {"azure": _shown_azure(auth)}


def shown_aws(auth: AwsAuth) -> dict[str, Any]:
    """Return the form of the configuration dump."""
    found: dict[str, Any] = {}
    if auth.keys is not None:
        found |= {"accessKeyId": REDACTED, "secretAccessKey": REDACTED}
    if auth.region is not None:
        found["region"] = auth.region
    if auth.service is not None:
        found["serviceName"] = auth.service
    role = auth.role
    if role is not None:
        session = role.session if role.expression is None else {"expression": role.expression}
        tags = [
            {"key": tag.key, "value": tag.value}
            if tag.expression is None
            else {"key": tag.key, "expression": tag.expression}
            for tag in role.tags
        ]
        found["assumeRole"] = {"roleArn": role.arn, "sessionName": session} | ({"tags": tags} if tags else {})
    return found


def _shown_azure(auth: AzureAuth) -> dict[str, Any]:
    if auth.kind in ("implicit", "developerImplicit"):
        return {auth.kind: {}}
    inner: dict[str, Any] = {}
    if auth.client is not None:
        inner = {"tenant_id": auth.client.tenant, "client_id": auth.client.client, "client_secret": REDACTED}
    if auth.identity is not None:
        name = next(name for name, told in IDENTITIES.items() if told == auth.identity[0])
        inner = {"userAssignedIdentity": {name: auth.identity[1]}}
    return {"explicitConfig": {auth.kind: inner}}
