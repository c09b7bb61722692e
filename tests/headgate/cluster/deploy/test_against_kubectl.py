"""Our merge of patches against kubectl's own, on the same objects."""

from __future__ import annotations

import json
import random
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from cluster_lab import built
from overlay_cases import CASES, DEPLOYMENT, Json, container, pod

from headgate.cluster.deploy.strategic import patched

# kubectl takes 0.1 s for each.
RANDOM = 60


@pytest.fixture(scope="module")
def kubectl() -> Path:
    return built() / "bin" / "kubectl"


def by_kubectl(kubectl: Path, folder: Path, document: Json, patch: Json) -> Json:
    file = folder / f"{abs(hash(json.dumps([document, patch])))}.json"
    file.write_text(json.dumps(document))
    command = [kubectl, "patch", "--local", "-f", file, "--type", "strategic", "-p", json.dumps(patch), "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={"HOME": str(folder)})
    assert done.returncode == 0, done.stderr
    found: Json = json.loads(done.stdout)
    return found


def plain(value: Any) -> Any:
    """Return a value without what is empty: kubectl leaves `{}` where `$patch: delete` took a map away, and its types write
    empty fields."""
    if isinstance(value, dict):
        kept = {key: plain(one) for key, one in value.items()}
        return {key: one for key, one in kept.items() if one not in ({}, [], None)}
    return [plain(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", CASES)
def test_a_patch(kubectl: Path, tmp_path: Path, name: str) -> None:
    document, patch = CASES[name]
    assert plain(patched(document, patch)) == plain(by_kubectl(kubectl, tmp_path, document, patch))


def random_patch(number: int) -> Json:
    """Return a patch of lists that are merged: items of old and new names in any order, changed, deleted or replaced."""
    chance = random.Random(number)

    def items(names: str, key: str, field: str) -> list[Json]:
        found: list[Json] = []
        for name in chance.sample(names, chance.randint(0, len(names))):
            if chance.random() < 0.25:
                found.append({key: name, "$patch": "delete"})
            else:
                found.append({key: name, field: chance.choice("xyz")})
        if chance.random() < 0.15:
            found.insert(chance.randint(0, len(found)), {"$patch": "replace"})
        return found

    spec = container(env=items("ABCDEF", "name", "value"))["spec"]["template"]["spec"]
    if chance.random() < 0.5:
        spec["nodeSelector"] = {name: chance.choice(("1", None)) for name in chance.sample("abcd", 2)}
        if chance.random() < 0.3:
            spec["nodeSelector"] = {"$patch": "replace", "z": "1"}
    if chance.random() < 0.5:
        spec["imagePullSecrets"] = [{"name": name} for name in chance.sample("abc", 2)]
    return pod(**spec)


def test_random_patches(kubectl: Path, tmp_path: Path) -> None:
    patches = [random_patch(number) for number in range(RANDOM)]
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda patch: by_kubectl(kubectl, tmp_path, DEPLOYMENT, patch), patches))
    for patch, answer in zip(patches, answers, strict=True):
        assert plain(patched(DEPLOYMENT, patch)) == plain(answer), patch
