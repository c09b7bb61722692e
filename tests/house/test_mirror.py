"""A unit test stands where its module stands: a path of the sources is a path of the tests."""

from __future__ import annotations

from pathlib import Path

from tests.house.each_rig import each

ROOT = Path(__file__).resolve().parents[2]
# Each folder of unit tests, the folder it mirrors, and the suffixes of modules there.
MIRRORS = (
    (ROOT / "tests" / "engine", ROOT / "engine" / "headgate_engine", (".pyx", ".pxd", ".py")),
    (ROOT / "tests" / "headgate", ROOT / "pysrc" / "headgate", (".py",)),
)
# A module held against another implementation: test_against_h11.py.
ORACLE = "test_against_"
# Tests of what several modules of a folder do together, with what that is.
OF_A_FOLDER = {
    "tests/engine/test_entry_points.py": "every compiled module refuses arguments of wrong types",
    "tests/engine/http1/test_fields.py": "field lines as head and codec read them",
    "tests/engine/llm/test_wrong_types.py": "every compiled module of the LLM paths refuses arguments of wrong types",
    "tests/headgate/dialect/test_oauth_providers.py": "metadata documents of real providers",
    "tests/headgate/dialect/llm/test_contents.py": "kinds of content, at all pairs",
    "tests/headgate/dialect/llm/test_continued.py": "conversations that change vendors, at all pairs",
    "tests/headgate/dialect/llm/transcript/test_realtime.py": "texts of realtime events, as the table reads them",
    "tests/headgate/dialect/llm/test_hostile.py": "translations of broken and hostile documents",
    "tests/headgate/dialect/llm/test_oracles.py": "translations against the vendors' own types",
    "tests/headgate/dialect/llm/test_requests.py": "requests of one format in the words of another",
    "tests/headgate/config/test_messages.py": "what is told of spoiled configurations, whatever reads them",
}
TESTS = sorted(path for folder, _, _ in MIRRORS for path in folder.rglob("test_*.py"))


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def mirrored(path: Path) -> bool:
    """Whether a module has the path of the test."""
    for folder, sources, suffixes in MIRRORS:
        if folder in path.parents:
            module = sources / path.relative_to(folder).with_name(path.stem.removeprefix("test_"))
            return module.is_dir() or any(module.with_suffix(suffix).exists() for suffix in suffixes)
    return False


@each(TESTS, name_of)
def test_a_unit_test_has_the_path_of_its_module(path: Path) -> None:
    assert mirrored(path) or path.name.startswith(ORACLE) or name_of(path) in OF_A_FOLDER


def test_the_list_of_tests_of_a_folder_is_short_of_nothing_it_names() -> None:
    for name in OF_A_FOLDER:
        assert not mirrored(ROOT / name), f"{name} mirrors a module"


def test_the_rule_can_fail() -> None:
    assert not mirrored(ROOT / "tests" / "engine" / "link" / "test_no_such_module.py")
    assert mirrored(ROOT / "tests" / "engine" / "link" / "test_pool.py")
