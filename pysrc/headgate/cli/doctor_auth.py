"""`gwctl doctor auth`: an issuer, from its metadata to a token that an MCP server behind the gateway takes.

What vendors do differently is told in their words. Sources: RFC 8414, RFC 7591, RFC 6749, OpenID Connect Discovery,
and the vendors' documentation of applications, custom authorization servers and registration.
"""

from __future__ import annotations

import base64
import contextlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Final
from urllib.parse import urlsplit

from headgate.cli.doctor_calls import FORM_TYPE, Answered, Examination, StepFailed, call, in_the_clear, is_form

Json = dict[str, Any]
ALGORITHMS: Final = frozenset(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"))
PROVIDERS: Final = ("auth0", "authentik", "descope", "entra", "keycloak", "okta")
KEY_TYPES: Final = frozenset(("RSA", "EC", "OKP"))
REDIRECT: Final = "http://localhost:6274/oauth/callback"
WELL_KNOWN: Final = "/.well-known/"
# Clocks may differ by so much.
LEEWAY_SECONDS: Final = 60
# Kind, and what its issuers look like.
MARKS: Final = (
    ("entra", "login.microsoftonline.com"), ("entra", "sts.windows.net"), ("okta", ".okta"), ("auth0", "auth0.com"),
    ("keycloak", "/realms/"), ("authentik", "/application/o/"), ("descope", "descope.com"),
    ("descope", "/v1/apps/agentic/"),
)  # fmt: skip
NO_REGISTRATION: Final[dict[str | None, str]] = {
    "entra": "create an app registration in Entra, and write its id as clientId, with provider: {entra: {}}",
    "auth0": "enable OIDC Dynamic Application Registration in Auth0's settings (Advanced), or write clientId",
    "okta": "register an application in Okta and write its id as clientId with provider: {okta: {}}",
    "keycloak": "enable client registration in Keycloak's realm (Clients, Client registration), or write clientId",
    "authentik": "create an OAuth2 provider in authentik, and write its id as clientId, with provider: {authentik: {}}",
    "descope": "enable dynamic client registration of the MCP server in Descope, or write clientId",
    None: "register a client by hand and write its id as clientId in mcpAuthentication",
}


@dataclass(frozen=True)
class AuthOptions:
    """What the user gives. `token`: one to look at instead of asking for one."""

    client_id: str | None = None
    client_secret: str | None = None
    scope: str | None = None
    audience: str | None = None
    token: str | None = None
    register: bool = False
    provider: str | None = None
    authority: str | None = None


def kind_of(issuer: str) -> str | None:
    """Return which vendor an issuer is one of, by its URL."""
    return next((kind for kind, mark in MARKS if mark in issuer), None)


def examine(issuer: str, options: AuthOptions, found: Examination) -> str | None:
    """Walk through an issuer; stop at the first step that fails. Return an access token, if one could be had."""
    walk = _IssuerWalk(issuer, options, found)
    for step, run in (
        ("discovery", walk.discovery), ("endpoints", walk.endpoints), ("keys", walk.keys),
        ("registration", walk.registration), ("token", walk.token), ("claims", walk.claims),
    ):  # fmt: skip
        try:
            run()
        except StepFailed as error:
            found.fail(step, error)
            return None
    return walk.access


class _IssuerWalk:
    def __init__(self, issuer: str, options: AuthOptions, found: Examination) -> None:
        self.issuer, self.options, self.found = issuer, options, found
        self.kind = options.provider or kind_of(issuer)
        self.document: Json = {}
        self.key_ids: set[str] = set()
        self.access: str | None = options.token
        # How far the clock of the provider is ahead of this one in seconds, if it tells.
        self.ahead_s: float | None = None

    def _get(self, url: str) -> Answered:
        answer = call("GET", url, authority=self.options.authority)
        with contextlib.suppress(KeyError, ValueError):
            self.ahead_s = parsedate_to_datetime(answer.fields["date"]).timestamp() - time.time()
        return answer

    # -- discovery -----------------------------------------------------------------------------------------------------
    def discovery(self) -> None:
        """Find the metadata document (RFC 8414 section 3, OpenID Connect Discovery section 4)."""
        if not is_form(self.issuer):
            raise StepFailed(f"{self.issuer!r} is not a URL", "give the issuer as the provider shows it, with https://")
        tried = []
        for url in places(self.issuer):
            answer = self._get(url)
            if answer.status == 200 and isinstance(answer.document, dict):
                self.document = answer.document
                self._same_issuer(url)
                self.found.good("discovery", url)
                return
            onward = f" to {answer.fields['location']}" if "location" in answer.fields else ""
            told = answer.shape if answer.status == 200 else f"status {answer.status}{onward}"
            tried.append(f"{url} ({told})")
        change = "check the issuer: it is the URL before /.well-known/ that the provider names"
        if self.kind == "keycloak" and "/auth/realms/" in self.issuer:
            change = (
                "remove /auth from the issuer: Keycloak has none since version 17, unless http-relative-path is set"
            )
        raise StepFailed(f"there is no metadata at {', '.join(tried)}", change)

    def _same_issuer(self, url: str) -> None:
        said = self.document.get("issuer")
        if said == self.issuer:
            return
        if isinstance(said, str) and "{tenantid}" in said:
            change = (
                "use the id of your tenant instead of common or organizations: tokens have it in their issuer"
            )
            raise StepFailed(f"{url} is the document of many tenants ({said})", change)
        if isinstance(said, str) and said.rstrip("/") == self.issuer.rstrip("/"):
            raise StepFailed(
                f"the provider calls itself {said!r}, which is not exactly {self.issuer!r}",
                f"write issuer: {said}",
            )
        change = (
            f"write issuer: {said}" if isinstance(said, str) else "ask the provider: the document must name its issuer"
        )
        raise StepFailed(f"{url} is the document of {said!r} and not of {self.issuer!r}", change)

    def endpoints(self) -> None:
        """Look at what clients need of the document."""
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            value = self.document.get(name)
            if not isinstance(value, str) or not is_form(value):
                raise StepFailed(
                    f"the metadata has no {name}", "choose an issuer with the authorization code flow and signed tokens"
                )
        if self.kind == "okta" and "/oauth2/" not in self.issuer:
            change = "use a custom authorization server, such as <your domain>/oauth2/default"
            raise StepFailed("only Okta can verify tokens of its org authorization server", change)
        methods = self.document.get("code_challenge_methods_supported")
        if self.kind == "entra":
            self.found.good(
                "endpoints", "PKCE is not listed, as always with Entra: provider: {entra: {}} lists it"
            )
        elif not isinstance(methods, list) or "S256" not in methods:
            change = (
                "enable PKCE with S256 at the provider: MCP clients refuse issuers whose metadata does not list it"
            )
            raise StepFailed("code_challenge_methods_supported does not list S256", change)
        else:
            self.found.good("endpoints", "authorization code with PKCE (S256)")

    def keys(self) -> None:
        """Look at the key set."""
        url = self.document["jwks_uri"]
        answer = self._get(url)
        keys = answer.document.get("keys") if isinstance(answer.document, dict) else None
        if answer.status != 200 or not isinstance(keys, list):
            raise StepFailed(
                f"{url} gives status {answer.status}, {answer.shape} and no key set",
                "have the provider publish its keys there",
            )
        usable = [
            one for one in keys
            if isinstance(one, dict) and one.get("kty") in KEY_TYPES and one.get("use", "sig") == "sig"
            and one.get("alg", "RS256") in ALGORITHMS
        ]  # fmt: skip
        if not usable:
            hint = (
                "choose a signing key in authentik's provider: without one its tokens are HS256"
                if self.kind == "authentik"
                else None
            )
            raise StepFailed(
                f"{url} has no key for supported signatures (RSA, EC, Ed25519)",
                hint or "have the provider sign with RS256 or ES256",
            )
        self.key_ids = {str(one["kid"]) for one in usable if "kid" in one}
        more = (
            f"; write jwks: {{url: {url}}}, as it is not where provider: {{okta: {{}}}} looks"
            if self.kind == "okta"
            else ""
        )
        self.found.good("keys", f"{len(usable)} usable at {url}{more}")

    # -- registration --------------------------------------------------------------------------------------------------
    def registration(self) -> None:
        """Register a client, if the user wants that, and take it back."""
        url = self.document.get("registration_endpoint")
        if self.options.client_id is not None:
            return self.found.skip("registration", "there is a client id")
        if not isinstance(url, str):
            raise StepFailed(
                "the metadata has no registration_endpoint, and there is no client id", NO_REGISTRATION[self.kind]
            )
        if not self.options.register:
            return self.found.skip("registration", f"{url} would create a client: use --register to try it")
        wanted = {
            "client_name": "gwctl doctor", "redirect_uris": [REDIRECT], "grant_types": ["authorization_code"],
            "response_types": ["code"], "token_endpoint_auth_method": "none",
        }  # fmt: skip
        answer = call("POST", url, wanted, authority=self.options.authority)
        if (
            answer.status not in (200, 201)
            or not isinstance(answer.document, dict)
            or "client_id" not in answer.document
        ):
            raise StepFailed(
                f"the registration was refused with status {answer.status}: {answer.quoted}",
                self._registration_change(answer),
            )
        return self.found.good("registration", "a client was registered" + self._taken_back(answer.document))

    def _registration_change(self, answer: Answered) -> str:
        if self.kind == "keycloak" and "Trusted Hosts" in answer.quoted:
            return (
                "add the hosts of your clients' redirect URIs to the policy Trusted Hosts of Keycloak, "
                "and the gateway's address, or disable 'Host sending registration request must match'"
            )
        return NO_REGISTRATION[self.kind]

    def _taken_back(self, client: Mapping[str, Any]) -> str:
        """Delete the client (RFC 7592), where the provider lets one; return what became of it."""
        place, token = client.get("registration_client_uri"), client.get("registration_access_token")
        if isinstance(place, str) and is_form(place) and isinstance(token, str):
            fields = {"authorization": f"Bearer {token}"}
            if call("DELETE", place, fields=fields, authority=self.options.authority).status in (200, 204):
                return " and deleted again"
        return f": delete {client['client_id']} at the provider"

    # -- tokens --------------------------------------------------------------------------------------------------------
    def token(self) -> None:
        """Ask for a token of the client itself (RFC 6749 section 4.4), if there is a client."""
        options = self.options
        if options.token is not None:
            return self.found.skip("token", "there is one already")
        if options.client_id is None or options.client_secret is None:
            return self.found.skip(
                "token", "use --client-id and --client-secret-env NAME to get one, or --token-env NAME to pass one"
            )
        endpoint = self.document["token_endpoint"]
        if in_the_clear(endpoint):
            why = f"{endpoint} does not use TLS, so no secret was sent"
            raise StepFailed(why, "have the provider name an https token endpoint (RFC 6749 section 3.2)")
        form = {
            "grant_type": "client_credentials",
            "client_id": options.client_id,
            "client_secret": options.client_secret,
        }
        form |= {name: value for name, value in (("scope", options.scope), ("audience", options.audience)) if value}
        if self.kind == "entra":
            form.pop("audience", None)
        answer = call("POST", endpoint, form, {"content-type": FORM_TYPE}, authority=options.authority)
        found = answer.document if isinstance(answer.document, dict) else {}
        if answer.status != 200 or not isinstance(found.get("access_token"), str):
            why = f"the token endpoint answers {answer.status} {found.get('error', '')}".rstrip() + f": {answer.quoted}"
            raise StepFailed(why, self._token_change(str(found.get("error", "")), answer.quoted))
        self.access = found["access_token"]
        return self.found.good(
            "token", f"of type {found.get('token_type', 'unknown')}, for {found.get('expires_in', '?')} s"
        )

    def _token_change(self, error: str, told: str) -> str:
        if self.kind == "entra" and ("AADSTS1002012" in told or "AADSTS70011" in told or error == "invalid_scope"):
            return "pass --scope api://<application id>/.default: Entra accepts no other scope for a client's own token"
        if self.kind == "entra" and "AADSTS7000215" in told:
            return "pass the value of the client secret, not the secret ID that Entra shows next to it"
        if error == "invalid_client":
            return "check client id and secret, and that the client may authenticate with a secret in the form"
        if error == "unauthorized_client":
            return (
                "allow the client the grant client_credentials (Keycloak: Service accounts roles; Auth0: Machine to "
                "Machine, authorized for the API)"
            )
        if error in ("invalid_scope", "invalid_target"):
            return "pass a --scope that the provider knows (Okta: a scope of the custom authorization server)"
        if self.kind == "auth0" and (error == "access_denied" or "audience" in told.lower()):
            return "pass --audience with the identifier of the API, and authorize the application for it"
        return "look at the provider's log for the reason"

    def claims(self) -> None:
        """Look at the token as the gateway would."""
        if self.access is None:
            return self.found.skip("claims", "there is no token")
        parts = self.access.split(".")
        if len(parts) != 3:
            change = "have the provider issue signed tokens (JWT)"
            if self.kind == "auth0":
                change = "pass --audience with the identifier of your API: otherwise only Auth0 can read the token"
            raise StepFailed("the token is opaque or encrypted, not a JWT that the gateway can verify", change)
        header, claims = _part(parts[0]), _part(parts[1])
        if header.get("alg") not in ALGORITHMS:
            raise StepFailed(
                f"the token is signed with {header.get('alg')!r}", "have the provider sign with RS256 or ES256"
            )
        if self.key_ids and header.get("kid") not in self.key_ids:
            raise StepFailed(f"the token's key {header.get('kid')!r} is not in the key set", self._key_change(claims))
        self._issuer_of(claims)
        audience = claims.get("aud")
        wanted = self.options.audience
        if wanted and wanted not in (audience if isinstance(audience, list) else [audience]):
            raise StepFailed(f"the token is for {audience!r} and not for {wanted!r}", self._audience_change(audience))
        self._times_of(claims)
        return self.found.good(
            "claims", f"issuer {claims.get('iss')}, audience {audience}: write audiences: [{_first(audience)}]"
        )

    def _times_of(self, claims: Json) -> None:
        now, expires, begins = time.time(), claims.get("exp"), claims.get("nbf")
        if isinstance(begins, int | float) and begins > now + LEEWAY_SECONDS:
            raise StepFailed(f"the token is valid only in {begins - now:.0f} s", self._clock_change())
        if not isinstance(expires, int | float):
            raise StepFailed("the token has no exp", "have the provider issue tokens that expire")
        if expires < now:
            if self.options.token is None:
                why = f"the token was issued just now, and has expired {now - expires:.0f} s ago"
                raise StepFailed(why, self._clock_change())
            raise StepFailed("the token has expired", "get a new one")

    def _clock_change(self) -> str:
        """Return whose clock is to be set, as far as the provider's answers have told their time."""
        if self.ahead_s is None or abs(self.ahead_s) <= LEEWAY_SECONDS:
            return "set the clocks of the provider and of this machine (NTP), which the gateway compares"
        return (
            f"set the clocks (NTP): that of the provider is {abs(self.ahead_s):.0f} s "
            f"{'ahead of' if self.ahead_s > 0 else 'behind'} this machine's"
        )

    def _key_change(self, claims: Json) -> str:
        if self.kind == "entra" and "graph" in str(claims.get("aud", "")):
            return "ask for a scope of your own API: only Microsoft Graph can verify tokens for it"
        return f"write jwks with the key set of {claims.get('iss')}"

    def _issuer_of(self, claims: Json) -> None:
        said = claims.get("iss")
        if said == self.issuer:
            return
        if self.kind == "entra" and "sts.windows.net" in str(said):
            change = "set requestedAccessTokenVersion to 2 in the manifest of the API, or write that issuer"
            raise StepFailed(f"the token is of version 1, whose issuer is {said}", change)
        if self.kind == "keycloak":
            change = "set the hostname of Keycloak (KC_HOSTNAME): it uses the host of the request as its own name"
            raise StepFailed(f"the token's issuer is {said} and not {self.issuer}", change)
        raise StepFailed(f"the token's issuer is {said} and not {self.issuer}", f"write issuer: {said}")

    def _audience_change(self, audience: Any) -> str:
        if self.kind == "keycloak":
            return "add a mapper of type Audience to a client scope in Keycloak, or write audiences: [account]"
        return f"ask the provider for it (scope, audience or resource), or write audiences: [{_first(audience)}]"


def places(issuer: str) -> list[str]:
    """Return where an issuer's metadata may be, in the order in which MCP clients look."""
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    return list(
        dict.fromkeys(
            (
                f"{origin}{WELL_KNOWN}oauth-authorization-server{path}",
                f"{origin}{WELL_KNOWN}openid-configuration{path}",
                f"{origin}{path}{WELL_KNOWN}openid-configuration",
            )
        )
    )


def _part(text: str) -> Json:
    try:
        found = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise StepFailed("the token is not a JWT", "have the provider issue signed tokens (JWT)")
    return found


def _first(audience: Any) -> Any:
    return audience[0] if isinstance(audience, list) and audience else audience
