from __future__ import annotations

from pathlib import Path

from headgate.crypto.aws_signature import AwsCredentials, Signed, ambient_credentials, sign
from headgate.document.secret import Secret

# The published test suite of Signature Version 4: key, date, region and service of all its cases.
KEYS = AwsCredentials(access=Secret("AKIDEXAMPLE"), secret=Secret("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"))
NOW = 1440938160.0


def signature(signed: Signed) -> str:
    headers = dict(sign(signed, KEYS, region="us-east-1", service="service", now=NOW))
    assert headers["x-amz-date"] == "20150830T123600Z"
    return headers["authorization"].rpartition("Signature=")[2]


def test_vectors_of_the_suite() -> None:
    plain = Signed(method="GET", host="example.amazonaws.com", path="/", body=b"")
    assert signature(plain) == "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"
    query = Signed(method="GET", host="example.amazonaws.com", path="/", query="Param2=value2&Param1=value1", body=b"")
    assert signature(query) == "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"
    post = Signed(method="POST", host="example.amazonaws.com", path="/", body=b"")
    assert signature(post) == "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"


def test_credentials_come_from_variables_then_from_the_file(tmp_path: Path) -> None:
    path = tmp_path / "credentials"
    path.write_text("[default]\naws_access_key_id = A\naws_secret_access_key = B\n[other]\naws_access_key_id=C\n")
    environ = {"AWS_SHARED_CREDENTIALS_FILE": str(path)}
    found = ambient_credentials(environ)
    assert found is not None
    assert (found.access.reveal(), found.secret.reveal(), found.token) == ("A", "B", None)
    assert ambient_credentials(environ | {"AWS_PROFILE": "other"}) is None
    assert ambient_credentials(environ | {"AWS_PROFILE": "none"}) is None
    both = environ | {"AWS_ACCESS_KEY_ID": "X", "AWS_SECRET_ACCESS_KEY": "Y", "AWS_SESSION_TOKEN": "Z"}
    found = ambient_credentials(both)
    assert found is not None
    assert found.token is not None
    assert (found.access.reveal(), found.token.reveal()) == ("X", "Z")
    assert ambient_credentials({}) is None
    assert "Y" not in repr(found)
