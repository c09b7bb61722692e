"""Strategic merge patches; test_against_kubectl.py compares with kubectl."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from overlay_cases import CASES, DEPLOYMENT, Json, container, pod

from headgate.cluster.deploy.outcome import DeployRefused
from headgate.cluster.deploy.strategic import patched


def spec_of(document: Json) -> Any:
    return document["spec"]["template"]["spec"]


def names(document: Json) -> list[str]:
    return [one["name"] for one in spec_of(document)["containers"][0]["env"]]


def test_items_are_merged_by_their_key() -> None:
    found = patched(DEPLOYMENT, container(env=[{"name": "B", "value": "new"}]))
    assert spec_of(found)["containers"][0]["env"] == [{"name": "A", "value": "1"}, {"name": "B", "value": "new"}, {"name": "C", "value": "3"}]


def test_delete_removes_an_item_or_a_field() -> None:
    assert names(patched(DEPLOYMENT, container(env=[{"name": "B", "$patch": "delete"}]))) == ["A", "C"]
    found = patched(DEPLOYMENT, container(securityContext={"$patch": "delete"}))
    assert "securityContext" not in spec_of(found)["containers"][0]
    assert "nodeSelector" not in spec_of(patched(DEPLOYMENT, pod(nodeSelector=None)))


def test_replace_replaces_a_map_or_a_list() -> None:
    assert names(patched(DEPLOYMENT, container(env=[{"$patch": "replace"}, {"name": "X", "value": "x"}]))) == ["X"]
    assert spec_of(patched(DEPLOYMENT, pod(nodeSelector={"$patch": "replace", "c": "3"})))["nodeSelector"] == {"c": "3"}


def test_merge_is_what_happens_anyway() -> None:
    with_word = patched(DEPLOYMENT, pod(nodeSelector={"$patch": "merge", "c": "3"}))
    assert with_word == patched(DEPLOYMENT, pod(nodeSelector={"c": "3"}))


def test_words_are_taken_out_of_a_list() -> None:
    found = patched(DEPLOYMENT, container(**{"$deleteFromPrimitiveList/args": ["-f"]}))
    assert spec_of(found)["containers"][0]["args"] == ["x"]


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        (container(env=[{"value": "1"}]), "Deployment.spec.template.spec.containers[headgate].env: an item without name"),
        (pod(nodeSelector={"$patch": "remove"}), "Deployment.spec.template.spec.nodeSelector: $patch: 'remove' is none of delete, replace and merge"),
        (container(env=["A"]), "Deployment.spec.template.spec.containers[headgate].env: expected an object, not 'A'"),
        (pod(**{"$patchy": 1}), "Deployment.spec.template.spec: $patchy is no directive of a strategic merge patch"),
        (pod(volumes=[{"name": "a", "$retainKeys": "b"}]), "Deployment.spec.template.spec.volumes[a]: $retainKeys: a list is expected"),
        (container(env=[{"name": "A", "$patch": "x"}]), "Deployment.spec.template.spec.containers[headgate].env: $patch: 'x' is none of delete, replace and merge"),
    ],
)  # fmt: skip
def test_what_cannot_be_understood_is_refused(patch: Json, message: str) -> None:
    with pytest.raises(DeployRefused) as refusal:
        patched(DEPLOYMENT, patch)
    assert str(refusal.value) == message


@pytest.mark.parametrize("name", CASES)
def test_neither_side_is_changed(name: str) -> None:
    document, patch = CASES[name]
    before = copy.deepcopy((document, patch))
    patched(document, patch)
    assert (document, patch) == before


VALUES = st.recursive(
    st.one_of(st.booleans(), st.integers(0, 9), st.text("xyz", max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abcd"), inner, max_size=3)),
    max_leaves=8,
)
MAPS = st.dictionaries(st.sampled_from("abcd"), VALUES, max_size=4)


@given(MAPS, MAPS)
def test_a_patch_is_in_force_and_twice_is_as_good_as_once(first: Json, second: Json) -> None:
    document = {"kind": "PodDisruptionBudget", "spec": first}
    once = patched(document, {"spec": second})
    assert patched(once, {"spec": second}) == once
    assert within(second, once["spec"])


@given(MAPS)
def test_an_object_is_not_changed_by_itself(value: Json) -> None:
    document = {"kind": "PodDisruptionBudget", "spec": value}
    assert patched(document, {"spec": value}) == document


@given(st.lists(st.sampled_from("ABCDEF"), unique=True), st.lists(st.sampled_from("ABCDEFGH"), unique=True))
def test_each_name_stands_once_and_in_the_order_of_the_patch(known: list[str], patch: list[str]) -> None:
    document = copy.deepcopy(DEPLOYMENT)
    spec_of(document)["containers"][0]["env"] = [{"name": name, "value": "old"} for name in known]
    found = names(patched(document, container(env=[{"name": name, "value": "new"} for name in patch])))
    assert sorted(found) == sorted({*known, *patch})
    assert [name for name in found if name in patch] == patch
    assert [name for name in found if name not in patch] == [name for name in known if name not in patch]


def within(part: Any, whole: Any) -> bool:
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(key in whole and within(one, whole[key]) for key, one in part.items())
    return bool(part == whole)
