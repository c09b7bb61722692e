"""What the files of `examples/` need: environment variables, and a folder `certs` beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import trustme

# Variables without a default.
ENVIRON: Final = {
    **dict.fromkeys(("OPENAI_API_KEY", "GROQ_API_KEY", "ANTHROPIC_API_KEY", "MCP_TOKEN", "PARTNER_KEY", "PROXY_KEY"), "k"),
    **dict.fromkeys(("OIDC_CLIENT_SECRET", "EXCHANGE_SECRET", "PETS_KEY", "TRAVEL_KEY"), "k"),
    **dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "k"),
    **dict.fromkeys(("WEATHER", "TRAVEL"), "127.0.0.1:9999"),
    "AGENT_ARN": "arn:aws:bedrock-agentcore:eu-west-1:123456789012:runtime/agent-AbCdEf1234",
    "OIDC_COOKIE_SECRET": "5a" * 32,
    "LOCALITY": "eu/eu-1",
    "REDIS_URL": "redis://127.0.0.1:1",
    **dict.fromkeys(("AUTHORIZER", "SERVICE", "MODEL_SERVER", "ENDPOINT_PICKER"), "127.0.0.1:1"),
}


def lay_out(folder: Path) -> None:
    """Make `folder`/certs: an authority (ca.pem), and certificate, key and token by the names that the examples use."""
    certs = folder / "certs"
    certs.mkdir()
    authority = trustme.CA()
    authority.cert_pem.write_to_path(certs / "ca.pem")
    issued = authority.issue_cert("localhost", "a.test", "127.0.0.1", key_type=trustme.KeyType.ECDSA)
    # The authority's own certificate is in the chain, so that a file named as `root` trusts what was issued.
    (certs / "server.crt").write_bytes(b"".join(blob.bytes() for blob in (*issued.cert_chain_pems, authority.cert_pem)))
    issued.private_key_pem.write_to_path(certs / "server.key")
    (certs / "token.txt").write_text("tok\n")
