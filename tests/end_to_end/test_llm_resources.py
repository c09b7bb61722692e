"""What clients keep at providers, with OpenAI's client: ids lead back to who made them, whichever worker gets the request."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from tests.end_to_end.llm_account_rig import Account
from tests.end_to_end.running import Gateway

CONFIG = """
gateways: {default: {port: {port}}}
llm:
  providers:
  - {name: main, provider: openAI, params: {baseUrl: "http://127.0.0.1:MAIN/v1", apiKey: sk-main}}
  - {name: other, provider: openAI, params: {baseUrl: "http://127.0.0.1:OTHER/v1", apiKey: sk-other}}
  - {name: azure, provider: azure, params: {azureResourceName: r, azureResourceType: openAI, baseUrl: "http://127.0.0.1:AZURE", apiKey: az}}
  models:
  - {name: gpt-main, provider: {reference: main}}
  - {name: gpt-other, provider: {reference: other}}
  - {name: alias, provider: {reference: other}, params: {model: gpt-real}}
  - {name: azure, provider: {reference: azure}}
  - {name: guarded, provider: {reference: main}, guardrails: {request: [{regex: {rules: [{pattern: x}], action: reject}}]}}
  virtualModels:
  - name: either
    routing: {weighted: {targets: [{model: gpt-main, weight: 1}, {model: gpt-other, weight: 1}]}}
  - name: first
    routing: {failover: {targets: [{model: gpt-main, priority: 1}, {model: gpt-other, priority: 2}]}}
  RESOURCES
  POLICIES
"""
RESOURCES = "resources: {defaultProvider: main, providers: [main, other]}"
KEYS = 'policies: {apiKey: {keys: [{key: sk-ann}, {key: sk-bob}]}}'
KEY = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
SESSION = f"session: {{key: {KEY}}}"


@dataclass
class Scene:
    """A gateway of two workers in front of accounts by name."""

    running: Gateway
    accounts: dict[str, Account]

    def client(self, key: str = "sk-ann", **fields: str) -> openai.OpenAI:
        headers = {name.replace("_", "-"): value for name, value in fields.items()}
        return openai.OpenAI(
            base_url=f"{self.running.url}/v1", api_key=key, max_retries=0, timeout=30, default_headers=headers
        )

    def asked(self, name: str) -> list[str]:
        """Method and path of what an account was asked, and no more of it than that from here on."""
        found = [f"{one.method} {one.path}" for one in self.accounts[name].seen]
        self.accounts[name].seen.clear()
        return found


@pytest.fixture(scope="module")
def accounts() -> Iterator[dict[str, Account]]:
    found = {name: Account(name) for name in ("main", "other", "azure")}
    yield found
    for one in found.values():
        one.close()


def text_of(accounts: dict[str, Account], resources: str = RESOURCES, policies: str = "") -> str:
    text = CONFIG.replace("RESOURCES", resources).replace("POLICIES", policies)
    for name, one in accounts.items():
        text = text.replace(name.upper(), str(one.port))
    return text


Start = Callable[..., Scene]


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory, accounts: dict[str, Account]) -> Iterator[Start]:
    gateways: list[Gateway] = []

    def begin(**parts: str) -> Scene:
        running = Gateway(tmp_path_factory.mktemp("resources"), text_of(accounts, **parts), 2, {}, SESSION)
        gateways.append(running)
        running.wait_ready()
        return Scene(running, accounts)

    yield begin
    for one in gateways:
        one.stop()
        assert "Traceback" not in one.log()


@pytest.fixture(scope="module")
def open_scene(start: Start) -> Scene:
    """Without policies that tell callers apart."""
    return start()


@pytest.fixture(scope="module")
def keyed_scene(start: Start) -> Scene:
    """With two keys."""
    return start(policies=KEYS)


@pytest.fixture
def scene(open_scene: Scene) -> Scene:
    for one in open_scene.accounts.values():
        one.seen.clear()
    return open_scene


def raw(scene: Scene, account: str) -> str:
    """The id of the file that an account was given last."""
    return [ident for ident in scene.accounts[account].kept if ident.startswith("file-")][-1]


def vendor(sealed: str, account: str) -> str:
    """A sealed id has the vendor's prefix, and nothing else of the vendor's id."""
    assert re.match("[a-z]+[-_]gw1_", sealed), sealed
    assert account not in sealed
    return sealed


WAYS = {
    "default": ({}, "main"),
    "provider": ({"x_gw_provider": "other"}, "other"),
    "model": ({"x_gw_model": "gpt-other"}, "other"),
    "alias": ({"x_gw_model": "alias"}, "other"),
}
EVERY_WAY = pytest.mark.parametrize("way", WAYS)


@EVERY_WAY
def test_files_and_batches_go_back_to_who_made_them(scene: Scene, way: str) -> None:
    fields, account = WAYS[way]
    maker, user = scene.client(**fields), scene.client()
    file = maker.files.create(file=("a.jsonl", b"{}"), purpose="batch")
    vendor(file.id, account)
    # Several times, for there are two workers.
    for _ in range(4):
        assert user.files.retrieve(file.id).id == file.id
    assert user.files.content(file.id).content == scene.accounts[account].kept[raw(scene, account)]["raw"]
    batch = user.batches.create(input_file_id=file.id, endpoint="/v1/responses", completion_window="24h")
    assert batch.input_file_id == file.id
    assert user.batches.retrieve(batch.id).id == batch.id == vendor(batch.id, account)
    assert batch.output_file_id
    assert user.files.content(vendor(batch.output_file_id, account)).content == b"results"
    assert user.batches.cancel(batch.id).status == "cancelled"
    assert user.files.delete(file.id).deleted
    others = [one for name, one in scene.accounts.items() if name != account]
    assert [one.seen for one in others] == [[], []]
    for one in scene.accounts[account].seen:
        assert one.headers["authorization"] == f"Bearer sk-{account}"
        assert "gw1_" not in one.path + one.body.decode("latin-1")
        assert not any(name.startswith("x-gw-") for name in one.headers)


@EVERY_WAY
def test_stores_jobs_uploads_and_conversations(scene: Scene, way: str) -> None:
    fields, account = WAYS[way]
    maker, user = scene.client(**fields), scene.client()
    file = maker.files.create(file=("a", b"x"), purpose="fine-tune")
    store = user.vector_stores.create(file_ids=[file.id], name="mine")
    assert vendor(store.id, account)
    added = user.vector_stores.files.create(store.id, file_id=file.id)
    assert (added.id, added.vector_store_id) == (file.id, store.id)
    job = user.fine_tuning.jobs.create(model="gpt-main" if account == "main" else "gpt-other", training_file=file.id)
    assert job.training_file == file.id
    assert user.fine_tuning.jobs.cancel(job.id).id == job.id
    upload = maker.uploads.create(bytes=3, filename="a", mime_type="text/plain", purpose="assistants")
    part = user.uploads.parts.create(upload.id, data=b"abc")
    assert part.upload_id == upload.id
    done = user.uploads.complete(upload.id, part_ids=[part.id])
    assert done.file is not None
    assert user.files.content(done.file.id).content == b"all"
    talk = maker.conversations.create(items=[])
    assert user.conversations.retrieve(talk.id).id == talk.id
    box = maker.containers.create(name="box", file_ids=[file.id])
    assert user.containers.retrieve(box.id).id == box.id
    assert [one.seen for name, one in scene.accounts.items() if name != account] == [[], []]


def test_lists_come_from_who_is_asked(scene: Scene) -> None:
    here, there = scene.client(), scene.client(x_gw_provider="other")
    mine = here.files.create(file=("a", b"x"), purpose="batch").id
    yours = there.files.create(file=("b", b"x"), purpose="batch").id
    assert mine in [one.id for one in here.files.list()]
    assert yours in [one.id for one in there.files.list()]
    assert mine not in [one.id for one in there.files.list()]
    # Whatever way it came, an id is the same.
    assert yours in [one.id for one in scene.client(x_gw_model="alias").files.list()]
    list(here.fine_tuning.jobs.list())
    assert "GET /v1/fine_tuning/jobs" in scene.asked("main")
    list(scene.client(x_gw_model="gpt-other").batches.list())
    assert "GET /v1/batches" in scene.asked("other")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", ["gpt-main", "gpt-other", "alias", "either", "first"])
def test_stored_responses_are_found_and_continued_where_they_are(scene: Scene, model: str, stream: bool) -> None:
    client = scene.client()
    for _ in range(6):
        if stream:
            events = list(client.responses.create(model=model, input="hi", stream=True))
            told = [one.response.id for one in events if one.type in ("response.created", "response.completed")]
            assert len(set(told)) == 1
            ident = told[0]
            # What the model says is not touched, whatever it looks like.
            [said] = [one.delta for one in events if one.type == "response.output_text.delta"]
            assert json.loads(said)["id"].startswith(("resp_main", "resp_other"))
        else:
            ident = client.responses.create(model=model, input="hi").id
        [account] = [name for name in ("main", "other") if scene.asked(name)]
        vendor(ident, account)
        assert client.responses.retrieve(ident).id == ident
        assert [one.id for one in client.responses.input_items.list(ident)] == ["msg_1"]
        assert client.responses.cancel(ident).id == ident
        following = client.responses.create(model=model, input="go on", previous_response_id=ident)
        assert following.previous_response_id == ident
        client.responses.delete(ident)
        with pytest.raises(openai.NotFoundError, match=f"{account} has no"):
            client.responses.retrieve(ident)
        assert [name for name in ("main", "other") if scene.asked(name)] == [account]


def test_what_guards_have_seen_is_not_to_be_had_past_them(scene: Scene) -> None:
    client = scene.client()
    ident = client.responses.create(model="guarded", input="hi").id
    for ask in (client, scene.client(x_gw_model="gpt-main"), scene.client(x_gw_provider="main")):
        with pytest.raises((openai.PermissionDeniedError, openai.NotFoundError)) as found:
            ask.responses.retrieve(ident)
        assert "guards of this model" in str(found.value) or "leads to the provider" in str(found.value)
    assert client.responses.create(model="guarded", input="hi", previous_response_id=ident).previous_response_id == ident


def test_ids_in_bodies_bind_the_request(scene: Scene) -> None:
    """A file at one provider is no file for a model of another one."""
    client = scene.client()
    files = [scene.client(x_gw_provider=name).files.create(file=("a", b"x"), purpose="user_data").id for name in ("main", "other")]

    def content(*names: str) -> Any:
        return [{"role": "user", "content": [{"type": "input_file", "file_id": name} for name in names]}]

    assert client.responses.create(model="gpt-other", input=content(files[1])).id
    assert client.responses.create(model="either", input=content(files[1])).id
    with pytest.raises(openai.NotFoundError, match="leads to the provider that made the id"):
        client.responses.create(model="gpt-main", input=content(files[1]))
    with pytest.raises(openai.BadRequestError, match="belong to different providers"):
        client.responses.create(model="either", input=content(*files))


def test_moderations_by_model_and_by_default(scene: Scene) -> None:
    assert scene.client().moderations.create(input="x").model == "omni"
    assert scene.client().moderations.create(input="x", model="gpt-other").model == "gpt-other"
    assert scene.client().moderations.create(input="x", model="alias").model == "gpt-real"
    assert [len(scene.asked(name)) for name in ("main", "other")] == [1, 2]


def test_realtime_secrets_and_calls(scene: Scene) -> None:
    """The model in the session decides, and becomes the provider's."""
    client = scene.client()
    secret = client.realtime.client_secrets.create(session={"type": "realtime", "model": "alias"})
    assert secret.value == "ek_1"
    assert secret.session.model == "gpt-real"  # type: ignore[union-attr]
    assert scene.asked("other") == ["POST /v1/realtime/client_secrets"]
    form = {"sdp": (None, b"v=0 offer", "application/sdp"),
            "session": (None, json.dumps({"type": "realtime", "model": "alias"}).encode(), "application/json")}  # fmt: skip
    answer = httpx.post(f"{scene.running.url}/v1/realtime/calls", files=form)
    assert (answer.status_code, answer.text) == (201, "v=0 answer")
    assert b'"model":"gpt-real"' in scene.accounts["other"].seen[-1].body
    call = answer.headers["location"].rpartition("/")[2]
    client.realtime.calls.hangup(vendor(call, "other"))
    assert scene.asked("other") == ["POST /v1/realtime/calls", "POST /v1/realtime/calls/rtc_other1/hangup"]
    answer = httpx.post(
        f"{scene.running.url}/v1/realtime/calls?model=alias", content=b"v=0 offer", headers={"content-type": "application/sdp"}
    )
    assert answer.status_code == 201
    assert scene.asked("other") == ["POST /v1/realtime/calls?model=gpt-real"]
    assert scene.asked("main") == []


def test_azure_has_its_own_paths(scene: Scene) -> None:
    client = scene.client(x_gw_model="azure")
    with pytest.raises(openai.NotFoundError):
        client.files.retrieve("file-azure0")
    assert scene.asked("azure") == ["GET /openai/v1/files/file-azure0"]
    httpx.get(f"{scene.running.url}/openai/v1/files?api-version=preview", headers={"x-gw-model": "azure"})
    assert scene.asked("azure") == ["GET /openai/v1/files?api-version=preview"]


@pytest.mark.parametrize("way", ["default", "model"])
@pytest.mark.parametrize("length", ["told", "not told"])
def test_long_uploads_go_through_unread(scene: Scene, way: str, length: str) -> None:
    fields, account = WAYS[way]
    file = scene.client(**fields).files.create(file=("a", b"x" * (9 << 20)), purpose="batch")
    assert scene.client().files.retrieve(file.id).bytes > 9 << 20
    if length == "not told":
        boundary = b"--b\r\ncontent-disposition: form-data; name=file; filename=a\r\n\r\n"
        pieces = (boundary, *([b"x" * (1 << 20)] * 9), b"\r\n--b--\r\n")
        headers = {"content-type": "multipart/form-data; boundary=b", **{name.replace("_", "-"): value for name, value in fields.items()}}
        answer = httpx.post(f"{scene.running.url}/v1/files", content=iter(pieces), headers=headers, timeout=30)
        assert answer.json()["bytes"] > 9 << 20
    assert {name for name in scene.accounts if scene.asked(name)} == {account}


def test_what_cannot_be_is_said(scene: Scene) -> None:
    with pytest.raises(openai.NotFoundError, match=r"llm\.resources\.providers"):
        scene.client(x_gw_provider="azure").files.list()
    with pytest.raises(openai.NotFoundError, match="'gpt-none' is not served here"):
        scene.client(x_gw_model="gpt-none").files.list()
    with pytest.raises(openai.PermissionDeniedError, match="guards of this model"):
        scene.client(x_gw_model="guarded").files.list()
    # An id of nobody is the provider's business, and so is one that is not ours.
    with pytest.raises(openai.NotFoundError, match="main has no 'file-gw1_"):
        scene.client().files.retrieve("file-gw1_" + "A" * 60)


def test_nothing_is_sent_without_a_choice(start: Start) -> None:
    scene = start(resources="")
    scene.asked("main")
    with pytest.raises(openai.BadRequestError, match="names no model"):
        scene.client().files.list()
    with pytest.raises(openai.NotFoundError, match=r"llm\.resources\.providers"):
        scene.client(x_gw_provider="main").files.list()
    assert scene.asked("main") == []
    # Models can be named all the same, and ids lead back.
    file = scene.client(x_gw_model="gpt-main").files.create(file=("a", b"x"), purpose="batch")
    assert scene.client().files.retrieve(file.id).id == file.id


def test_ids_belong_to_who_got_them(keyed_scene: Scene) -> None:
    scene = keyed_scene
    ann, bob = scene.client("sk-ann"), scene.client("sk-bob")
    file = ann.files.create(file=("a", b"x"), purpose="batch").id
    ident = ann.responses.create(model="gpt-other", input="hi").id
    assert ann.files.retrieve(file).id == file
    assert ann.responses.retrieve(ident).id == ident
    for ask in (
        lambda: bob.files.retrieve(file),
        lambda: bob.files.delete(file),
        lambda: bob.batches.create(input_file_id=file, endpoint="/v1/responses", completion_window="24h"),
        lambda: bob.responses.retrieve(ident),
        lambda: bob.responses.create(model="gpt-other", input="hi", previous_response_id=ident),
        lambda: bob.with_options(default_headers={"x-gw-provider": "other"}).responses.delete(ident),
    ):
        with pytest.raises(openai.NotFoundError, match="was not given to this caller"):
            ask()
    for client in (ann, bob):
        for ask in (client.files.list, client.batches.list, client.fine_tuning.jobs.list, client.vector_stores.list):
            with pytest.raises(openai.PermissionDeniedError, match="lists: shared"):
                ask()
    # Within what is theirs they may read lists.
    assert [one.id for one in ann.responses.input_items.list(ident)] == ["msg_1"]


def test_lists_can_be_shared(start: Start) -> None:
    scene = start(resources=RESOURCES.replace("}", ", lists: shared}"), policies=KEYS)
    file = scene.client("sk-ann").files.create(file=("a", b"x"), purpose="batch")
    [found] = [one.id for one in scene.client("sk-bob").files.list() if one.filename is None and one.bytes == file.bytes][-1:]
    # It is bound to who has read it.
    assert found != file.id
    assert scene.client("sk-bob").files.retrieve(found).id == found


def test_rules_of_resources(start: Start) -> None:
    rules = "authorization: {rules: ['request.headers[\"x-team\"] == \"ops\"']}"
    scene = start(resources=RESOURCES.replace("}", f", {rules}}}"))
    with pytest.raises(openai.PermissionDeniedError):
        scene.client().files.list()
    scene.asked("main")
    list(scene.client(x_team="ops").files.list())
    assert scene.asked("main") == ["GET /v1/files"]


def test_ids_outlive_the_gateway_and_are_worth_nothing_elsewhere(start: Start, tmp_path: Path) -> None:
    first, second = start(), start()
    file = first.client().files.create(file=("a", b"x"), purpose="batch").id
    assert second.client().files.retrieve(file).id == file
    third = Gateway(tmp_path, text_of(first.accounts), 1, {}, SESSION.replace(KEY, KEY[::-1]))
    try:
        third.wait_ready()
        with pytest.raises(openai.NotFoundError, match="main has no 'file-gw1_"):
            Scene(third, first.accounts).client().files.retrieve(file)
    finally:
        third.stop()
