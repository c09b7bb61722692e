"""What clients keep at Anthropic, Google and as stored chat completions, with the vendors' clients: ids lead back to who made them."""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import anthropic
import httpx
import openai
import pytest
from google import genai
from google.genai import errors, types
from tests.end_to_end.llm_rig import served, stand_ins
from tests.end_to_end.llm_translated_rig import GEMINI
from tests.end_to_end.provider_stand_in import DONE, Answer, Asked, StandIn, chat, chunk, message, stream, whole
from tests.end_to_end.running import Gateway

CONFIG = """
gateways: {default: {port: {port}}}
llm:
  providers:
  - {name: ann-main, provider: anthropic, params: {baseUrl: "http://127.0.0.1:MAIN", apiKey: sk-main}}
  - {name: ann-other, provider: anthropic, params: {baseUrl: "http://127.0.0.1:OTHER", apiKey: sk-other}}
  - {name: goo-main, provider: gemini, params: {baseUrl: "http://127.0.0.1:MAIN", apiKey: AIza-main}}
  - {name: goo-other, provider: gemini, params: {baseUrl: "http://127.0.0.1:OTHER", apiKey: AIza-other}}
  - {name: goo-moved, provider: gemini, params: {baseUrl: "http://127.0.0.1:MAIN/to/google", apiKey: AIza-main}}
  - {name: ann-moved, provider: anthropic, params: {baseUrl: "http://127.0.0.1:MAIN/to/claude/v1", apiKey: sk-main}}
  - {name: oai-main, provider: openAI, params: {baseUrl: "http://127.0.0.1:MAIN/v1", apiKey: sk-main}}
  - {name: oai-other, provider: openAI, params: {baseUrl: "http://127.0.0.1:OTHER/v1", apiKey: sk-other}}
  models:
  - {name: claude-main, provider: {reference: ann-main}}
  - {name: claude-other, provider: {reference: ann-other}}
  - {name: gem-main, provider: {reference: goo-main}}
  - {name: gem-other, provider: {reference: goo-other}}
  - {name: gpt-main, provider: {reference: oai-main}}
  - {name: gpt-other, provider: {reference: oai-other}}
  virtualModels:
  - {name: claude-any, routing: {failover: {targets: [{model: claude-main, priority: 0}, {model: claude-other, priority: 1}]}}}
  - {name: gem-any, routing: {failover: {targets: [{model: gem-main, priority: 0}, {model: gem-other, priority: 1}]}}}
  resources: {defaultProvider: oai-main, providers: [ann-main, ann-other, ann-moved, goo-main, goo-other, goo-moved, oai-main, oai-other]}
  POLICIES
"""
KEYS = "policies: {apiKey: {keys: [{key: sk-ann}, {key: sk-bob}]}}"
NAMES = ("main", "other")
HI: Any = [{"role": "user", "content": "hi"}]


class Vendors:
    """The accounts of one name at all vendors. They know their own ids only, and tell addresses of the vendors' hosts."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.google = f"{name}-file"
        self.uploaded = b""
        self.prefix = ""

    def __call__(self, stand_in: StandIn, handler: BaseHTTPRequestHandler) -> None:
        asked: Asked = handler.asked  # type: ignore[attr-defined]
        text = asked.path + (asked.body[:4096].decode("latin-1") if asked.body else "")
        # No sealed id and no id of the other account may arrive here.
        if "gw1" in text or any(f"{other}1" in text or f"{other}-file" in text for other in NAMES if other != self.name):
            whole({"error": {"message": f"{self.name} has no such id", "code": 404, "status": "NOT_FOUND"}}, 404)(stand_in, handler)
        else:
            self.answer(asked)(stand_in, handler)

    def answer(self, asked: Asked) -> Answer:
        path = asked.path.partition("?")[0]
        for part, told in (("/chat/completions", self.chat), ("batches", self.batch), ("/upload/", self.upload), ("/v1beta/", self.gemini),
                           ("-file", self.gemini), ("cachedContents", self.gemini), (":generateContent", self.gemini)):
            if part in path:
                return told(asked, path)
        if path == "/v1/messages":
            return whole(message())
        file = {"id": f"file_{self.name}1", "type": "file", "filename": "a.txt", "mime_type": "text/plain", "size_bytes": 3,
                "created_at": "2026-01-01T00:00:00Z", "downloadable": True}  # fmt: skip
        if path.endswith("/content"):
            return whole(b"abc")
        return whole({"id": file["id"], "type": "file_deleted"} if asked.method == "DELETE" else file)

    def batch(self, asked: Asked, path: str) -> Answer:
        ident = f"msgbatch_{self.name}1"
        if path.endswith("/results"):
            return whole(json.dumps({"custom_id": "one", "result": {"type": "succeeded", "message": message()}}).encode() + b"\n")
        counts = {"processing": 0, "succeeded": 1, "errored": 0, "canceled": 0, "expired": 0}
        return whole({
            "id": ident, "type": "message_batch", "processing_status": "ended", "request_counts": counts, "created_at": "2026-01-01T00:00:00Z",
            "expires_at": "2026-01-02T00:00:00Z", "ended_at": None, "archived_at": None, "cancel_initiated_at": None,
            "results_url": f"https://api.anthropic.com{self.prefix}/v1/messages/batches/{ident}/results",
        })  # fmt: skip

    def upload(self, asked: Asked, path: str) -> Answer:
        if "upload_id" not in asked.path:
            url = f"https://generativelanguage.googleapis.com{path}?upload_id={self.name}1-AbC&upload_protocol=resumable"
            return whole({}, x_goog_upload_url=url, x_goog_upload_status="active")
        assert f"upload_id={self.name}1-AbC&" in asked.path
        self.uploaded += asked.body
        final = "finalize" in asked.headers["x-goog-upload-command"]
        told = {"file": self.file()} if final else {}
        return whole(told, x_goog_upload_status="final" if final else "active")

    def file(self) -> dict[str, Any]:
        uri = f"https://generativelanguage.googleapis.com/v1beta/files/{self.google}"
        return {"name": f"files/{self.google}", "displayName": "files/mine", "mimeType": "text/plain", "sizeBytes": "3", "uri": uri,
                "downloadUri": f"{uri}:download?alt=media", "state": "ACTIVE"}  # fmt: skip

    def gemini(self, asked: Asked, path: str) -> Answer:
        if ":generateContent" in path:
            return whole(GEMINI)
        if "cachedContents" in path:
            return whole({"name": f"cachedContents/{self.name}1", "model": "models/real", "displayName": "mine"})
        return whole({} if asked.method == "DELETE" else self.file())

    def chat(self, asked: Asked, path: str) -> Answer:
        kept = {**chat(), "id": f"chatcmpl-{self.name}1"}
        if asked.method == "DELETE":
            return whole({"id": kept["id"], "object": "chat.completion.deleted", "deleted": True})
        if path.endswith("/messages"):
            data = [{"id": f"{kept['id']}-0", "role": "user", "content": "hi"}]
            return whole({"object": "list", "data": data, "first_id": data[0]["id"], "last_id": data[0]["id"], "has_more": False})
        if asked.method == "POST" and path.endswith("/completions") and asked.json.get("stream"):
            return stream(*(one.replace(b'"c"', f'"{kept["id"]}"'.encode()) for one in (chunk("hel"), chunk("lo", "stop"))), DONE)
        return whole(kept)


class Scene:
    def __init__(self, running: Gateway, providers: list[StandIn], vendors: dict[str, Vendors]) -> None:
        self.running = running
        self.providers = dict(zip(NAMES, providers, strict=True))
        self.vendors = vendors

    def last(self, name: str) -> Asked:
        return self.providers[name].last


Start = Callable[[str], Scene]


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    with contextlib.ExitStack() as stack:

        def begin(policies: str) -> Scene:
            vendors = {name: Vendors(name) for name in NAMES}
            providers = stack.enter_context(stand_ins(*vendors.values()))
            text = CONFIG.replace("POLICIES", policies)
            for name, one in zip(NAMES, providers, strict=True):
                text = text.replace(name.upper(), str(one.port))
            return Scene(stack.enter_context(served(tmp_path_factory.mktemp("vendors"), text)), providers, vendors)

        yield begin


@pytest.fixture(scope="module")
def scene(start: Start) -> Scene:
    return start("")


@pytest.fixture(scope="module")
def keyed(start: Start) -> Scene:
    return start(KEYS)


def claude(scene: Scene, **fields: str) -> anthropic.Anthropic:
    headers = {name.replace("_", "-"): value for name, value in fields.items()}
    return anthropic.Anthropic(base_url=scene.running.url, api_key="own", max_retries=0, timeout=30, default_headers=headers)


@pytest.mark.parametrize("name", NAMES)
def test_files_of_anthropic(scene: Scene, name: str) -> None:
    chosen, plain = claude(scene, x_gw_provider=f"ann-{name}"), claude(scene)
    made = chosen.beta.files.upload(file=("a.txt", io.BytesIO(b"abc"), "text/plain"))
    assert re.fullmatch("file_gw1_[A-Za-z0-9_-]+", made.id)
    assert b"abc" in scene.last(name).body
    assert scene.last(name).headers["x-api-key"] == f"sk-{name}"
    # The id alone says where to.
    assert plain.beta.files.retrieve_metadata(made.id).id == made.id
    assert plain.beta.files.download(made.id).read() == b"abc"
    content: Any = [{"type": "document", "source": {"type": "file", "file_id": made.id}}, {"type": "text", "text": "sum it up"}]
    said = plain.beta.messages.create(
        model="claude-any", max_tokens=99, messages=[{"role": "user", "content": content}], betas=["files-api-2025-04-14"]
    )
    assert said.content
    assert scene.last(name).json["messages"][0]["content"][0]["source"]["file_id"] == f"file_{name}1"
    assert plain.beta.files.delete(made.id).id == made.id


@pytest.mark.parametrize("name", NAMES)
def test_batches_of_anthropic_and_their_results(scene: Scene, name: str) -> None:
    chosen, plain = claude(scene, x_gw_model=f"claude-{name}"), claude(scene)
    made = chosen.messages.batches.create(
        requests=[{"custom_id": "one", "params": {"model": "claude-real", "max_tokens": 9, "messages": HI}}]
    )
    assert re.fullmatch("msgbatch_gw1_[A-Za-z0-9_-]+", made.id)
    assert scene.last(name).json["requests"][0]["params"]["model"] == "claude-real"
    assert made.results_url == f"{scene.running.url}/v1/messages/batches/{made.id}/results"
    assert plain.messages.batches.cancel(made.id).id == made.id
    # The client goes where the batch says that its results are: to the gateway, with the gateway's key.
    [one] = list(plain.messages.batches.results(made.id))
    assert one.result.type == "succeeded"
    assert scene.last(name).path == f"/v1/messages/batches/msgbatch_{name}1/results"


def test_addresses_of_a_provider_behind_a_path_lead_there_and_back(scene: Scene) -> None:
    """`baseUrl` has a path: a proxy of vendors in front of the provider, which tells addresses with that path."""
    provider, vendors = scene.providers["main"], scene.vendors["main"]
    vendors.prefix = "/to/claude"
    vendors.uploaded = b""
    before = len(provider.seen)
    batches, files = claude(scene, x_gw_provider="ann-moved"), google(scene, x_gw_provider="goo-moved")
    try:
        batch = batches.messages.batches.create(
            requests=[{"custom_id": "one", "params": {"model": "claude-real", "max_tokens": 9, "messages": HI}}]
        )
        assert batch.results_url == f"{scene.running.url}/v1/messages/batches/{batch.id}/results"
        results = httpx.get(batch.results_url, headers={"x-gw-provider": "ann-moved"})
        assert results.json()["custom_id"] == "one"
        files.files.upload(file=io.BytesIO(b"abc"), config=types.UploadFileConfig(mime_type="text/plain"))
    finally:
        vendors.prefix = ""
    assert vendors.uploaded == b"abc"
    paths = [one.path.partition("?")[0] for one in provider.seen[before:]]
    assert paths[:2] == ["/to/claude/v1/messages/batches", "/to/claude/v1/messages/batches/msgbatch_main1/results"]
    assert [bool(re.fullmatch("/to/google/upload/v1(beta)?/files", one)) for one in paths[2:]] == [True, True]


def test_a_proxy_in_front_that_ends_tls_is_believed_for_addresses(scene: Scene) -> None:
    told = httpx.get(
        f"{scene.running.url}/v1/messages/batches/msgbatch_main1",
        headers={"x-gw-provider": "ann-main", "host": "ai.example.com", "x-forwarded-proto": "https"},
    ).json()
    assert told["results_url"].startswith("https://ai.example.com/v1/messages/batches/msgbatch_gw1_")


def google(scene: Scene, **fields: str) -> genai.Client:
    headers = {name.replace("_", "-"): value for name, value in fields.items()}
    return genai.Client(api_key="own", http_options=types.HttpOptions(base_url=scene.running.url, headers=headers))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [3, 9 << 20])
def test_files_of_google(scene: Scene, name: str, size: int) -> None:
    """Uploads go in pieces of 8 MiB, past the limit of what the gateway keeps."""
    chosen, plain = google(scene, x_gw_provider=f"goo-{name}"), google(scene)
    scene.vendors[name].uploaded = b""
    file = chosen.files.upload(file=io.BytesIO(b"x" * size), config=types.UploadFileConfig(mime_type="text/plain"))
    assert scene.vendors[name].uploaded == b"x" * size
    assert file.name is not None
    assert file.uri is not None
    # The names that Google's client takes: lower-case letters and digits.
    assert re.fullmatch("files/gw1[a-z2-7]+", file.name)
    assert file.uri == f"https://generativelanguage.googleapis.com/v1beta/{file.name}"
    assert file.display_name == "files/mine"
    assert plain.files.get(name=file.name).name == file.name
    # Whatever version of Google's API the client asks for.
    assert re.fullmatch(rf"/v1(beta)?/files/{name}-file", scene.last(name).path)
    assert {one.headers.get("x-goog-api-key") for one in scene.providers[name].seen if "/files" in one.path and "goog" in str(one.headers)} == {
        f"AIza-{name}"
    }
    said = plain.models.generate_content(model="gem-any", contents=["sum it up", file])
    assert said.text
    sent = scene.last(name).body.decode()
    assert re.findall('"file_?[uU]ri": ?"([^"]*)"', sent) == [f"https://generativelanguage.googleapis.com/v1beta/files/{name}-file"]
    with pytest.raises(errors.ClientError) as found:
        plain.models.generate_content(model="gem-other" if name == "main" else "gem-main", contents=[file])
    assert found.value.code == 404
    plain.files.delete(name=file.name)
    assert scene.last(name).method == "DELETE"


@pytest.mark.parametrize("name", NAMES)
def test_caches_of_google(scene: Scene, name: str) -> None:
    chosen, plain = google(scene, x_gw_model=f"gem-{name}"), google(scene)
    made = chosen.caches.create(
        model=f"gem-{name}", config=types.CreateCachedContentConfig(contents="long", display_name="mine")
    )
    assert made.name is not None
    assert re.fullmatch("cachedContents/gw1[a-z2-7]+", made.name)
    assert plain.caches.get(name=made.name).name == made.name
    plain.models.generate_content(model="gem-any", contents="hi", config=types.GenerateContentConfig(cached_content=made.name))
    assert f'"cachedContents/{name}1"' in scene.last(name).body.decode()


def gpt(scene: Scene, key: str = "sk-ann") -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{scene.running.url}/v1", api_key=key, max_retries=0, timeout=30)


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_stored_chat_completions(scene: Scene, name: str, streams: bool) -> None:
    client = gpt(scene)
    asked: Any = {"model": f"gpt-{name}", "messages": HI, "store": True}
    if streams:
        [ident] = {one.id for one in client.chat.completions.create(**asked, stream=True)}
    else:
        ident = client.chat.completions.create(**asked).id
    assert re.fullmatch("chatcmpl-gw1_[A-Za-z0-9_-]+", ident)
    assert client.chat.completions.retrieve(ident).id == ident
    assert scene.last(name).path == f"/v1/chat/completions/chatcmpl-{name}1"
    assert client.chat.completions.update(ident, metadata={"a": "b"}).id == ident
    [told] = client.chat.completions.messages.list(ident).data
    assert told.id.startswith("chatcmpl-gw1_")
    assert client.chat.completions.delete(ident).id == ident
    assert scene.last(name).method == "DELETE"


def test_completions_that_are_not_stored_keep_their_ids(scene: Scene) -> None:
    asked: Any = {"model": "gpt-main", "messages": HI}
    for more in ({}, {"store": False}):
        made = gpt(scene).chat.completions.create(**asked, **more)
        assert made.id == "chatcmpl-main1"


def test_stored_completions_belong_to_who_made_them(keyed: Scene) -> None:
    ident = gpt(keyed, "sk-ann").chat.completions.create(model="gpt-other", messages=HI, store=True).id
    assert gpt(keyed, "sk-ann").chat.completions.retrieve(ident).id == ident
    for act in ("retrieve", "delete"):
        with pytest.raises(openai.NotFoundError) as found:
            getattr(gpt(keyed, "sk-bob").chat.completions, act)(ident)
        assert found.value.code == "id_not_found"


def test_names_of_google_belong_to_who_got_them(keyed: Scene) -> None:
    def get(path: str, key: str, **fields: str) -> httpx.Response:
        headers = {"authorization": f"Bearer {key}", **{name.replace("_", "-"): value for name, value in fields.items()}}
        return httpx.get(keyed.running.url + path, headers=headers)

    made = get("/v1beta/files/other-file", "sk-ann", x_gw_provider="goo-other").json()
    assert get(f"/v1beta/{made['name']}", "sk-ann").json()["name"] == made["name"]
    assert get(f"/v1beta/{made['name']}", "sk-bob").status_code == 404
    # An address of an upload is as good as an id.
    head = {"authorization": "Bearer sk-ann", "x-gw-provider": "goo-other", "x-goog-upload-command": "start"}
    url = httpx.post(f"{keyed.running.url}/upload/v1beta/files", headers=head, json={}).headers["x-goog-upload-url"]
    assert url.startswith(f"{keyed.running.url}/upload/v1beta/files?upload_id=gw1_")
    for key, status in (("sk-bob", 404), ("sk-ann", 200)):
        head = {"authorization": f"Bearer {key}", "x-goog-upload-command": "upload, finalize", "x-goog-upload-offset": "0"}
        assert httpx.post(url, headers=head, content=b"abc").status_code == status
