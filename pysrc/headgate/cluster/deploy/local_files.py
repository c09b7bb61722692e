"""What a gateway on this machine is started with: a private folder with its files, and its environment."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any, Final

from headgate.cluster.deploy.address_range import loopback_of
from headgate.cluster.deploy.configuration import FILE, configuration_text, log_filter
from headgate.cluster.deploy.local_ports import own_ports
from headgate.cluster.deploy.local_process import RECORD
from headgate.cluster.deploy.naming import short_name
from headgate.cluster.deploy.objects import new_session_key
from headgate.cluster.deploy.outcome import DeployRefused
from headgate.cluster.deploy.parameters import MergedParameters
from headgate.cluster.deploy.pod import AUTHORITY_FILE, TOKEN_FILE
from headgate.cluster.deploy.settings import DeploySettings
from headgate.cluster.snapshot import ObjectKey

Json = dict[str, Any]
_SESSION_KEY_FILE: Final = "session-key"
# What a process gets of this one's environment: the controller's credentials are not among it.
_INHERITED: Final = (
    "HOME", "LANG", "LC_ALL", "PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "PYTHONPATH", "SSL_CERT_DIR",
    "SSL_CERT_FILE", "TMPDIR", "TZ", "VIRTUAL_ENV",
)  # fmt: skip


class LocalFiles:
    """`temporary`: whether the process has to end with this one, however that ends."""

    def __init__(
        self, folder: Path, key: ObjectKey, address: str, settings: DeploySettings, temporary: bool
    ) -> None:
        self.folder = self.folder_of(folder, key)
        self.configuration = self.folder / FILE
        self.environment: dict[str, str] = {}
        self.digest = ""
        self._key = key
        self._address = address
        self._settings = settings
        self._temporary = temporary

    @staticmethod
    def folder_of(folder: Path, key: ObjectKey) -> Path:
        # A namespace has no dot in it.
        return folder / f"{key.namespace}.{short_name(key.name)}"

    def write(self, parameters: MergedParameters, *, failing: bool = False) -> None:
        """Write the files that have changed, and say the environment. `failing`: no process runs, and the last one
        ended at its start. Raises OSError, and DeployRefused for variables that only a pod has.
        """
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write(self.configuration, configuration_text(parameters))
        if self._settings.authority:
            _write(self.folder / AUTHORITY_FILE, self._settings.authority)
        self.environment = self._environment(parameters, failing)
        self.digest = hashlib.sha256(json.dumps(self.environment, sort_keys=True).encode()).hexdigest()
        if self._temporary:
            self.environment["HEADGATE_PARENT"] = str(os.getpid())

    def write_token(self, token: str) -> None:
        _write(self.folder / TOKEN_FILE, token)

    def _environment(self, parameters: MergedParameters, failing: bool) -> dict[str, str]:
        name, own = short_name(self._key.name), loopback_of(self._address)
        servers = own_ports(self.folder, own, failing, (self.folder / RECORD).exists())
        found = {key: os.environ[key] for key in _INHERITED if key in os.environ}
        found |= {
            "TERMINATION_GRACE_PERIOD_SECONDS": str(parameters.longest),
            "NODE_NAME": "local",
            "POD_NAMESPACE": self._key.namespace,
            "NAMESPACE": self._key.namespace,
            "POD_NAME": f"{name}-local",
            "INSTANCE_IP": self._address,
            "SERVICE_ACCOUNT": name,
            "GATEWAY": name,
            "XDS_ADDRESS": self._settings.xds_address,
            "XDS_TOKEN_FILE": str(self.folder / TOKEN_FILE),
            "STATE_DIRECTORY": str(self.folder / "state"),
            "BIND_ADDRESS": self._address,
            **{variable: f"{own}:{port}" for variable, port in servers.items()},
            # Every gateway shares this machine with the others.
            "WORKER_THREADS": "1",
        }
        if self._settings.authority:
            found["XDS_ROOT_CA"] = str(self.folder / AUTHORITY_FILE)
        if (level := log_filter(parameters)) is not None:
            found["RUST_LOG"] = level
        if not parameters.own_session_key:
            found["SESSION_KEY"] = self._session_key()
        for one in parameters.env:
            if one.get("valueFrom"):
                raise DeployRefused(f"env {one['name']}: valueFrom needs a pod")
            found[one["name"]] = one.get("value") or ""
        (self.folder / "state").mkdir(mode=0o700, exist_ok=True)
        return found

    def _session_key(self) -> str:
        """Return the key of sessions: it stays the same as long as the folder is there."""
        file = self.folder / _SESSION_KEY_FILE
        if not file.exists():
            _write(file, new_session_key())
        return file.read_text(encoding="ascii")


def _write(file: Path, text: str) -> None:
    """Write a file that this user alone can read, unless it says so already: never half of it is there."""
    if file.exists() and file.read_text(encoding="utf-8") == text:
        return
    new = file.with_name(f".{file.name}.new")
    with open(new, "w", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o600)) as stream:
        stream.write(text)
    new.rename(file)
