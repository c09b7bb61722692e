"""`gwctl doctor llm`: a provider of models, from its list of models to the first words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from headgate.cli.doctor_calls import Answered, Examination, StepFailed, call, is_form

OK, UNAUTHORIZED, FORBIDDEN, NOT_FOUND, TOO_MANY = 200, 401, 403, 404, 429
PAYMENT: Final = 402
REDIRECTS: Final = (301, 302, 303, 307, 308)
# What people copy from examples together with the base URL.
PATHS: Final = ("/chat/completions", "/completions", "/messages", "/responses", "/models")
# Names of models that do not chat: the first one that is listed may be one.
OTHER_WORK: Final = re.compile(r"embed|whisper|tts|dall-e|image|moderation|rerank|transcri|sora|audio", re.IGNORECASE)
FORMATS: Final = ("openai", "anthropic", "gemini")
BASES: Final = {
    "openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com/v1",
    "gemini": "https://generativelanguage.googleapis.com/v1beta",
}  # fmt: skip
MOST_NAMED: Final = 5


@dataclass(frozen=True)
class LlmOptions:
    """What the user gives. `form` is one of FORMATS."""

    form: str
    base: str
    key: str | None
    model: str | None
    authority: str | None = None


def examine_llm(options: LlmOptions, found: Examination) -> None:
    """Walk through a provider; stop at the first step that fails."""
    walk = _ProviderWalk(options, found)
    for step, run in (("models", walk.models), ("first call", walk.first_call), ("stream", walk.stream)):
        try:
            run()
        except StepFailed as error:
            return found.fail(step, error)
    return None


class _ProviderWalk:
    def __init__(self, options: LlmOptions, found: Examination) -> None:
        self.options, self.found = options, found
        self.base = options.base.rstrip("/")
        self.model = options.model

    @property
    def _fields(self) -> dict[str, str]:
        key, form = self.options.key, self.options.form
        if key is None:
            return {}
        if form == "openai":
            return {"authorization": f"Bearer {key}"}
        if form == "gemini":
            return {"x-goog-api-key": key}
        return {"x-api-key": key, "anthropic-version": "2023-06-01"}

    def _call(self, method: str, path: str, body: Any = None) -> Answered:
        return call(method, f"{self.base}{path}", body, self._fields, authority=self.options.authority)

    def models(self) -> None:
        """Ask for the list of models, and look for the one that is wanted."""
        if not is_form(self.base):
            raise StepFailed(f"{self.base!r} is not a URL", "give --base-url as params.baseUrl has it, with https://")
        answer = self._call("GET", "/models")
        if answer.status == NOT_FOUND and self.model is not None:
            return self.found.skip("models", "the provider has no list of models at this base URL")
        self._refused(answer)
        names = self._names(answer)
        if self.model is None:
            if not names:
                raise StepFailed("the provider lists no model", "load a model, or pass its name with --model")
            self.model = next((name for name in names if not OTHER_WORK.search(name)), names[0])
        elif names and self.model not in names:
            near = [
                one for one in names if self.model.lower() in one.lower() or one.lower() in self.model.lower()
            ] or names
            raise StepFailed(
                f"the provider does not list {self.model}",
                f"name one of its models, such as {', '.join(near[:MOST_NAMED])}",
            )
        return self.found.good("models", f"{len(names)} listed, {self.model} is taken")

    @staticmethod
    def _names(answer: Answered) -> list[str]:
        document = answer.document
        if not isinstance(document, dict):
            raise StepFailed(
                f"the list of models is {answer.shape}",
                "check --base-url: it ends where the paths of the API begin, such as /v1",
            )
        found = document.get("data", document.get("models"))
        entries = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
        return [str(one.get("id") or one.get("name", "")).removeprefix("models/") for one in entries]

    def _refused(self, answer: Answered) -> None:
        """Raise StepFailed for an answer that is an error."""
        status, told = answer.status, answer.quoted
        if status == OK:
            return
        if status in REDIRECTS:
            place = answer.fields.get("location", "")
            raise StepFailed(f"the provider sends clients on to {place}", "write --base-url with that scheme and host")
        if answer.is_page and status not in (NOT_FOUND, TOO_MANY):
            change = "look for a proxy, a firewall or a login between here and the provider, which answers in its place"
            raise StepFailed(f"no API answers, but {told} (status {status})", change)
        if status in (UNAUTHORIZED, FORBIDDEN) or (status == 400 and "api key" in told.lower()):
            if self.options.key is None:
                raise StepFailed(
                    f"the provider requires a key: {told}", "pass the variable that contains it with --key-env NAME"
                )
            raise StepFailed(
                f"the provider refuses the key: {told}",
                "check that it is whole, not revoked, and for this account and region",
            )
        if status == NOT_FOUND:
            raise StepFailed(f"the API is not at {self.base}: {told}", f"try --base-url {self._other_base()}")
        if status in (TOO_MANY, PAYMENT):
            wait = answer.fields.get("retry-after", "")
            change = "look at quota and billing of the account, or wait" + (f" {wait} s" if wait.isdecimal() else "")
            raise StepFailed(f"the provider takes no more requests: {told}", change)
        if status >= 500:
            raise StepFailed(
                f"the provider fails with status {status}: {told}", "look at its status page or log, and try again"
            )
        raise StepFailed(f"the provider answers with status {status}: {told}", "look at what it says")

    def _other_base(self) -> str:
        for path in PATHS:
            if self.base.endswith(path):
                return self.base.removesuffix(path)
        return self.base.removesuffix("/v1") if self.base.endswith("/v1") else f"{self.base}/v1"

    def _question(self, *, stream: bool) -> tuple[str, dict[str, Any]]:
        words = "Say ok."
        if self.options.form == "gemini":
            action = "streamGenerateContent?alt=sse" if stream else "generateContent"
            return f"/models/{self.model}:{action}", {"contents": [{"role": "user", "parts": [{"text": words}]}]}
        body: dict[str, Any] = {"model": self.model, "messages": [{"role": "user", "content": words}]}
        if stream:
            body["stream"] = True
        if self.options.form == "anthropic":
            return "/messages", body | {"max_tokens": 16}
        return "/chat/completions", body

    def first_call(self) -> None:
        """Ask the model something."""
        answer = self._call("POST", *self._question(stream=False))
        if answer.status in (400, NOT_FOUND) and "model" in answer.quoted.lower():
            raise StepFailed(
                f"the provider does not serve {self.model}: {answer.quoted}", "pass a model of the account with --model"
            )
        self._refused(answer)
        document = answer.document
        marks = {"openai": "choices", "anthropic": "content", "gemini": "candidates"}
        if not isinstance(document, dict) or marks[self.options.form] not in document:
            raise StepFailed(
                f"the answer is none of the format {self.options.form}", f"try another --format ({', '.join(FORMATS)})"
            )
        usage = document.get("usage") or document.get("usageMetadata")
        more = "" if usage else "; it tells no usage, so that tokens are estimated"
        self.found.good("first call", f"{self.model} answers{more}")

    def stream(self) -> None:
        """Ask for a stream."""
        answer = self._call("POST", *self._question(stream=True))
        self._refused(answer)
        if answer.kind != "text/event-stream" or not isinstance(answer.document, dict):
            change = "look for something between here and the provider that gathers answers (a proxy)"
            raise StepFailed(f"the provider does not stream ({answer.kind or 'no type'})", change)
        self.found.good("stream", "the first event has come")
