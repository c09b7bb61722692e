"""Extensions and package layout; everything else is in pyproject.toml.

Environment:
  HEADGATE_ENGINE_DEBUG=1   assertions, line trace, annotated C, no optimisation
  HEADGATE_ONLY=a,b         build only the modules whose dotted name contains one of these words
"""

from __future__ import annotations

import os
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, find_namespace_packages, find_packages, setup

ROOT = Path(__file__).resolve().parent
ENGINE = Path("engine")
DEBUG = os.environ.get("HEADGATE_ENGINE_DEBUG") == "1"
ONLY = [word for word in os.environ.get("HEADGATE_ONLY", "").split(",") if word]

COMPILE_ARGS = ["-O0", "-g", "-UNDEBUG"] if DEBUG else ["-O3", "-g0", "-fno-plt", "-Wno-unused-function"]
DEFINES = [("CYTHON_TRACE", "1"), ("CYTHON_TRACE_NOGIL", "1")] if DEBUG else []

# Safe by default; a module that switches a check off says why at its head.
DIRECTIVES = {
    "language_level": 3,
    "embedsignature": True,
    "boundscheck": True,
    "wraparound": False,
    "initializedcheck": False,
    "cdivision": True,
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
            Extension(name, [str(relative)], extra_compile_args=COMPILE_ARGS, define_macros=DEFINES)
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


if __name__ == "__main__":
    setup(
        package_dir={"headgate_engine": "engine/headgate_engine", "headgate": "pysrc/headgate"},
        packages=find_packages("engine") + find_namespace_packages("pysrc", include=["headgate", "headgate.*"]),
        package_data={
            "headgate_engine": ["**/*.pxd", "**/*.pyi", "py.typed"],
            "headgate": ["py.typed", "**/*.json", "**/*.yaml", "**/*.html", "**/*.css", "**/*.js", "**/*.svg"],
        },
        ext_modules=build_all(),
        options={"build_ext": {"parallel": os.cpu_count() or 1}},
        zip_safe=False,
    )
