"""OpenSSL, as Python has loaded it."""

from __future__ import annotations

import re
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

import headgate_engine.tls.library as library
from headgate_engine.errors import TlsError

# Not beside the module: an instrumented build has it elsewhere.
SOURCE = Path(__file__).parents[3] / "engine" / "headgate_engine" / "tls" / "library.pxd"


def test_it_is_the_library_of_pythons_own_module() -> None:
    assert library.version() == " ".join(ssl.OPENSSL_VERSION.split()[:2])


def test_names_and_members_are_the_same_in_the_same_order() -> None:
    body = SOURCE.read_text().split("cdef struct Functions:")[1].split("# Filled by load()")[0]
    assert tuple(re.findall(r"\(\*(\w+)\)\(", body)) == library.NAMES


def test_no_second_library_is_mapped() -> None:
    code = (
        "import ssl, headgate_engine.tls.library as library; library.version(); "
        "print(*{line.split()[-1] for line in open('/proc/self/maps') if 'libssl' in line or 'libcrypto' in line})"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert len({Path(name).name.split(".")[0] for name in found}) == len(found)


def test_where_there_is_none() -> None:
    code = (
        "import _ssl, headgate_engine.tls.library as library\n"
        "del _ssl.__file__\n"
        "library.NAMES = ('no_such_function',) * len(library.NAMES)\n"
        "try: library.version()\n"
        "except library.TlsError as error: print(error)\n"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told.startswith("TLS needs OpenSSL 3 as a shared library")
    with pytest.raises(TlsError):
        raise TlsError("it is a ValueError") from ValueError()
