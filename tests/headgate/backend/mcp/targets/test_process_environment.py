"""What a server that runs as a child process gets of the gateway's environment."""

from __future__ import annotations

import pytest

from headgate.backend.mcp.targets.process_environment import process_environment
from headgate.document.secret import Secret
from headgate.ir.mcp import StdioTarget

GIVEN = {"TOKEN": "mine", "HOME": "/srv"}


def environment(own: dict[str, str], *, clear: bool = False, given: dict[str, str] | None = None) -> dict[str, str]:
    env = tuple((name, Secret(value)) for name, value in (given or {}).items())
    target = StdioTarget(key="stdio/t", name="t", cmd="x", args=(), env=env, clear_env=clear)
    return process_environment(target, own)


@pytest.mark.parametrize(
    ("name", "value", "inherited"),
    [
        ("PATH", "/bin", True),
        ("HOME", "/root", True),
        ("USER", "ada", True),
        ("LANG", "C.UTF-8", True),
        ("LC_ALL", "C", True),
        ("XDG_CACHE_HOME", "/tmp/cache", True),
        ("TZ", "UTC", True),
        ("VIRTUAL_ENV", "/venv", True),
        ("SSL_CERT_FILE", "/etc/ca.pem", True),
        ("HTTPS_PROXY", "http://proxy.test:3128", True),
        ("https_proxy", "http://proxy.test:3128", True),
        ("no_proxy", "localhost,127.0.0.1", True),
        # What the configuration expands, and what else is no business of a server.
        ("OPENAI_API_KEY", "sk-x", False),
        ("ANTHROPIC_API_KEY", "sk-x", False),
        ("AWS_SECRET_ACCESS_KEY", "x", False),
        ("AWS_ACCESS_KEY_ID", "x", False),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/key.json", False),
        ("AZURE_CLIENT_SECRET", "x", False),
        ("GITHUB_TOKEN", "x", False),
        ("SESSION_KEY", "6b6b", False),
        ("OIDC_COOKIE_SECRET", "5a5a", False),
        ("DATABASE_URL", "postgres://u:p@h/d", False),
        ("KUBECONFIG", "/root/.kube/config", False),
        ("SSH_AUTH_SOCK", "/tmp/agent", False),
        ("HTTPS_PROXY", "http://user:password@proxy.test:3128", False),
        ("http_proxy", "token@proxy.test", False),
        ("path", "/bin", False),
        ("MY_PATH", "/bin", False),
        ("LD_PRELOAD", "/tmp/x.so", False),
        # CVE-2014-6271: a function that a shell exported.
        ("TERM", "() { :;}; echo x", False),
    ],
)
def test_a_process_gets_what_a_program_needs_and_no_secret(name: str, value: str, inherited: bool) -> None:
    assert environment({name: value}) == ({name: value} if inherited else {})
    assert environment({name: value}, clear=True) == {}


def test_what_the_target_says_holds() -> None:
    own = {"HOME": "/root", "PATH": "/bin", "TOKEN": "the gateway's"}
    assert environment(own, given=GIVEN) == {"HOME": "/srv", "PATH": "/bin", "TOKEN": "mine"}
    assert environment(own, given=GIVEN, clear=True) == GIVEN
