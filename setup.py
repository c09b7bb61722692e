"""Extensions and package layout; everything else is in pyproject.toml.

Environment:
  HEADGATE_ENGINE_DEBUG=1   assertions, line trace, annotated C, no optimisation
  HEADGATE_OPTIMIZE=1       level of optimisation of the C compiler (3): 1 builds twice as fast, for work in progress
  HEADGATE_ONLY=a,b         build only the modules whose dotted name contains one of these words
  HEADGATE_SANITIZE=address checks of memory and of undefined behaviour; =fuzzer also counts edges for libFuzzer (needs
                            clang). ci/sanitize.sh and ci/fuzz_guided.sh build with it, into folders of their own
  HEADGATE_COMPILED=engine  compile nothing, and take the modules that a build in place has left in this folder
  SOURCE_COMMIT             commit that the build calls itself where there is no git checkout
  SOURCE_DATE_EPOCH         its date, in seconds (reproducible-builds.org); else that of the commit
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

# Before anything is compiled, and before what is only there for compiling is imported.
if not sys.platform.startswith("linux"):
    sys.exit(
        f"headgate runs on Linux, and this is {sys.platform}: its engine stands on epoll and eventfd. "
        "Run it in a container or a virtual machine of Linux (docs/install.md)."
    )

from Cython.Build import cythonize
from setuptools import Extension, find_namespace_packages, find_packages, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

ROOT = Path(__file__).resolve().parent
ENGINE = Path("engine")
DEBUG = os.environ.get("HEADGATE_ENGINE_DEBUG") == "1"
OPTIMIZE = os.environ.get("HEADGATE_OPTIMIZE", "3")
ONLY = [word for word in os.environ.get("HEADGATE_ONLY", "").split(",") if word]

COMPILED = os.environ.get("HEADGATE_COMPILED", "")

SANITIZE = os.environ.get("HEADGATE_SANITIZE", "")

# Line numbers and whole frames, so that a finding names its place. Alignment is not checked: CPython's own headers lay
# objects out by hand.
SANITIZERS = {
    "address": ["-fsanitize=address,undefined"],
    "fuzzer": ["-fsanitize=address,undefined,fuzzer-no-link", "-fno-sanitize=function"],
}
SANITIZE_ARGS = ["-g1", "-fno-omit-frame-pointer", "-fno-sanitize-recover=all", "-fno-sanitize=alignment"]

COMPILE_ARGS = ["-O0", "-g", "-UNDEBUG"] if DEBUG else [f"-O{OPTIMIZE}", "-g0", "-fno-plt", "-Wno-unused-function"]
# Nothing tells where a build was made that can be repeated elsewhere. Not for others: caches of compilers know objects
# by the words of the command.
if os.environ.get("SOURCE_DATE_EPOCH"):
    COMPILE_ARGS.append(f"-ffile-prefix-map={ROOT}=.")
# One mapping for code and constants instead of three: a gateway has a hundred of these libraries, and whatever walks
# its mappings while it stands still (a profiler, for each new address) is done sooner.
LINK_ARGS = ["-Wl,-z,noseparate-code"]
if SANITIZE:
    COMPILE_ARGS += [*SANITIZERS[SANITIZE], *SANITIZE_ARGS]
    # Clang leaves the run-time library to whoever loads the module; so does the preload of either compiler.
    LINK_ARGS += [] if SANITIZE == "fuzzer" else SANITIZERS[SANITIZE]
DEFINES = [("CYTHON_TRACE", "1"), ("CYTHON_TRACE_NOGIL", "1")] if DEBUG else []

# Safe by default; a module that switches a check off says why at its head.
DIRECTIVES = {
    "language_level": 3,
    "embedsignature": True,
    # For help() and inspect.signature(), which find no other signature without bindings.
    "embedsignature.format": "clinic",
    # A method that is called on its class checks what it gets as self; a bound function of Cython's does not.
    "binding": False,
    "boundscheck": True,
    "wraparound": False,
    "initializedcheck": False,
    "cdivision": True,
    # None where an object of the engine is wanted is a TypeError or AttributeError, not the end of the process.
    "nonecheck": True,
    # A copy of an object of the engine would have the pointers of the other.
    "auto_pickle": False,
    "linetrace": DEBUG,
}


def one_extension_per_pyx() -> list[Extension]:
    """Return one extension for each .pyx below engine/, named by its path."""
    found = []
    for source in sorted((ROOT / ENGINE).rglob("*.pyx")):
        relative = source.relative_to(ROOT)
        name = ".".join(relative.relative_to(ENGINE).with_suffix("").parts)
        if ONLY and not any(word in name for word in ONLY):
            continue
        found.append(
            Extension(
                name,
                [str(relative)],
                extra_compile_args=COMPILE_ARGS,
                extra_link_args=LINK_ARGS,
                define_macros=DEFINES,
            )
        )
    return found


def build_all() -> list[Extension]:
    modules: list[Extension] = cythonize(
        one_extension_per_pyx(),
        include_path=[str(ENGINE)],
        build_dir="build/cython-debug" if DEBUG else "build/cython",
        compiler_directives=DIRECTIVES,
        annotate=DEBUG,
        nthreads=0 if ONLY else (os.cpu_count() or 1),
        force=DEBUG,
    )
    return modules


# What tests, fuzzing and benchmarks need of the engine in C: built in place, and no part of what is installed.
DRIVERS = "headgate_drivers"


class BuildExt(build_ext):
    """Leaves drivers out of a wheel."""

    def run(self) -> None:
        if not (self.inplace or self.editable_mode or SANITIZE):
            self.extensions = [one for one in self.extensions if not one.name.startswith(f"{DRIVERS}.")]
            # Of an earlier build in place: what lies there goes into the wheel.
            shutil.rmtree(Path(self.build_lib) / DRIVERS, ignore_errors=True)
        super().run()

    def build_extension(self, ext: Extension) -> None:
        if not COMPILED:
            super().build_extension(ext)
            return
        module = Path(COMPILED, self.get_ext_filename(ext.name))
        source = Path(COMPILED, *ext.name.split(".")).with_suffix(".pyx")
        if not module.exists() or module.stat().st_mtime < source.stat().st_mtime:
            raise SystemExit(f"{module} is not compiled from the {source.name} beside it: build in place first")
        target = Path(self.get_ext_fullpath(ext.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(module, target)

    def build_extensions(self) -> None:
        # An interpreter that was built somewhere of its own (pyenv) has every module look for libraries there, on all
        # machines that it comes to. Ours need none but the C library.
        for name in ("linker_so", "linker_so_cxx"):
            words = getattr(self.compiler, name, None)
            if words is not None:
                setattr(self.compiler, name, [word for word in words if not word.startswith("-Wl,-rpath")])
        super().build_extensions()


BUILT = Path("headgate/build.json")


def git(*words: str) -> str:
    """Return what git says of this tree; nothing where it says nothing. A repository around the tree does not count."""
    if not (ROOT / ".git").exists():
        return ""
    try:
        done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def source() -> dict[str, str]:
    """Return commit and date of the sources, as far as they are known; equal sources give equal answers."""
    try:
        told: dict[str, str] = json.loads((ROOT / "pysrc" / BUILT).read_text("ascii"))    # of a source distribution
    except (OSError, ValueError):
        told = {}
    commit = git("rev-parse", "HEAD")
    if commit and git("status", "--porcelain", "--untracked-files=no"):
        commit += "-dirty"
    seconds = os.environ.get("SOURCE_DATE_EPOCH") or git("log", "-1", "--format=%ct")
    date = datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if seconds.isdigit() else ""
    commit = commit or os.environ.get("SOURCE_COMMIT", "") or told.get("commit", "")
    return {"commit": commit, "date": date or told.get("date", "")}


def write_source(path: Path) -> None:
    """Write what headgate.telemetry.build_info reads."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(source()) + "\n", "ascii")


class BuildPy(build_py):
    """Also writes which sources these are. Not into the tree itself, which goes on to change."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            write_source(Path(self.build_lib) / BUILT)


class Sdist(sdist):
    """The same for a source distribution, which has no git."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        super().make_release_tree(base_dir, files)
        write_source(Path(base_dir, "pysrc") / BUILT)


if __name__ == "__main__":
    setup(
        package_dir={
            "headgate_engine": "engine/headgate_engine",
            DRIVERS: f"engine/{DRIVERS}",    # where they are built in place; not one of `packages`
            "headgate": "pysrc/headgate",
        },
        packages=find_packages("engine", include=["headgate_engine", "headgate_engine.*"])
        + find_namespace_packages("pysrc", include=["headgate", "headgate.*"]),
        package_data={
            "headgate_engine": ["**/*.pxd", "**/*.pyi", "**/*.h", "py.typed"],
            "headgate": ["py.typed", "**/*.json", "**/*.yaml", "**/*.html", "**/*.css", "**/*.js", "**/*.svg"],
        },
        cmdclass={"build_ext": BuildExt, "build_py": BuildPy, "sdist": Sdist},
        # A source distribution holds what Cython reads, not what it writes.
        ext_modules=one_extension_per_pyx() if COMPILED or "sdist" in sys.argv[1:] else build_all(),
        options={"build_ext": {"parallel": os.cpu_count() or 1}},
        zip_safe=False,
    )
