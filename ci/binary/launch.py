"""What the one-file program runs: `headgate`, or `gwctl`, by the name of this script (ci/binary/build.py)."""

import os
import sys
from pathlib import Path

# Where distributions keep the certificate authorities that they trust. The library for TLS in this image looks where
# Debian has them.
AUTHORITIES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)


def trust() -> None:
    """Name the authorities of this machine, or those that came with the program, unless somebody has."""
    if "SSL_CERT_FILE" in os.environ or "SSL_CERT_DIR" in os.environ:
        return
    carried = str(Path(__file__).parents[1] / "share/cacert.pem")
    os.environ["SSL_CERT_FILE"] = next((path for path in AUTHORITIES if os.access(path, os.R_OK)), carried)


trust()
if Path(__file__).name == "gwctl":
    from headgate.cli.gwctl import main
else:
    from headgate.cli.main import main
sys.exit(main())
