"""The views of the page at /ui for agents: models, what MCP servers offer, and the playground."""

from __future__ import annotations

import json

import pytest
from tests.end_to_end.browser import Page
from tests.end_to_end.page_rig import EVIL, browser, page, running
from tests.end_to_end.running import Gateway

pytestmark = pytest.mark.browser
__all__ = ["browser", "page", "running"]


def go(page: Page, running: Gateway, name: str) -> None:
    page.go(f"http://127.0.0.1:{running.admin}/ui/{name}")
    page.wait("document.querySelector('#connection').dataset.state === 'live'")


def cells(page: Page, start: str) -> list[str]:
    row = f"[...document.querySelectorAll('tbody tr')].find((one) => one.children[0].textContent === {json.dumps(start)})"
    page.wait(f"Boolean({row})")
    return list(page.js(f"[...{row}.children].map((one) => one.textContent)"))


def test_models_have_price_health_errors_and_time_to_first_token(page: Page, running: Gateway) -> None:
    go(page, running, "models")
    page.wait("[...document.querySelectorAll('td')].some((one) => one.textContent === 'healthy')")
    found = cells(page, "sample")
    assert found[1:4] == ["openai", "healthy", "$250 in, $1000 out"]
    assert int(found[4]) >= 6
    assert found[5] == "0"
    assert cells(page, "*")[2:5] == ["no calls", "none known", "0"], "a model that nobody has called is there all the same"
    # A stream brings a first token.
    go(page, running, "playground")
    page.wait("document.querySelector('datalist option')")
    page.fill("Message", "hello")
    page.click("Send")
    page.wait_text("first word after")
    go(page, running, "models")
    row = "[...document.querySelectorAll('tbody tr')].find((one) => one.children[0].textContent === 'sample')"
    page.wait(f"/s$/.test({row}.children[6].textContent)")


def connect(page: Page, path: str) -> None:
    page.wait("document.querySelector('select').options.length === 2")
    page.js(f"((one) => one.selectedIndex = [...one.options].findIndex((o) => o.text.includes({json.dumps(path)})))(document.querySelector('select'))")
    page.click("Connect")


def test_targets_are_checked_and_have_their_figures(page: Page, running: Gateway) -> None:
    go(page, running, "mcp")
    row = "[...document.querySelectorAll('tbody tr')].find((one) => one.children[0].textContent === 'sample')"
    page.wait(f"{row}.children[1].textContent !== ''")
    assert cells(page, "sample")[3].endswith(" (process)")
    assert cells(page, "sample")[5] == "not checked"
    page.click("Check all")
    page.wait(f"{row}.children[5].textContent.startsWith('up, ')")
    # The check is a session like others: the gateway knows the target by it.
    page.wait(f"{row}.children[1].textContent === 'up' && Number({row}.children[6].textContent) > 0")
    assert cells(page, "sample")[2] == "headgate-sample 0.1.0"
    assert cells(page, "sample")[7:] == ["0", *cells(page, "sample")[8:10], "\u2013"]
    assert all(one.endswith("s") for one in cells(page, "sample")[8:10])


def test_prompts_and_resources_are_listed_and_read(page: Page, running: Gateway) -> None:
    go(page, running, "mcp")
    connect(page, "/mcp")
    page.wait_text("3 tools, 1 prompt, 1 resource")
    page.click("Prompts (1)")
    page.click("greet")
    page.fill("name *", "Ada")
    page.click("Get prompt")
    page.wait("document.querySelector('[aria-label=\"Result of the call\"] .turn')?.textContent.includes('Ada')")
    page.click("Resources (1)")
    page.click("readme")
    page.click("Read resource")
    page.wait("document.querySelector('[aria-label=\"Result of the call\"] pre')?.textContent.length > 0")
    page.wait_text("Done after")


def test_notifications_and_pings_are_noted(page: Page, running: Gateway) -> None:
    go(page, running, "mcp")
    connect(page, "/mcp")
    page.wait_text("3 tools")
    page.click("slow")
    page.fill("seconds *", "0.2")
    page.click("Call tool")
    page.wait_text("Done after")
    page.click("Notifications (")
    page.wait("document.querySelector('.notes')?.textContent.includes('notifications/progress')")
    page.click("Ping")
    page.wait("document.querySelector('.notes li strong')?.textContent === 'ping' && document.querySelector('.notes li').textContent.includes('answered')")


def test_templates_of_resources_are_filled_in(page: Page, running: Gateway) -> None:
    go(page, running, "mcp")
    page.wait("document.querySelector('select').options.length === 2")
    told = page.js("""(async () => {
      const { inspector } = await import('/ui/assets/inspector.js');
      const asked = [];
      const client = { list: async (method) => (method === 'resources/templates/list' ? [{ name: 'file', uriTemplate: 'file:///{path}?at={+line}' }] : []),
        request: async (method, params) => { asked.push([method, params]); return { contents: [{ uri: params.uri, text: 'ok' }] }; } };
      const one = inspector(() => client);
      document.querySelector('#view').append(one.element);
      const words = await one.load({ resources: {} });
      one.element.querySelector('.tools button').click();
      [...one.element.querySelectorAll('form textarea')].forEach((field, at) => { field.value = ['a b', '3'][at]; });
      one.element.querySelector('form').requestSubmit();
      await new Promise((done) => setTimeout(done));
      return [words, asked];
    })()""")
    assert told == ["1 template", [["resources/read", {"uri": "file:///a%20b?at=3"}]]]


# Relay requests whose first answer waits until it is let through.
HELD = """(() => {
  const real = window.fetch;
  window.sent = [];
  window.fetch = async (path, options) => {
    if (!String(path).endsWith('/relay')) return real(path, options);
    const order = JSON.parse(options.body);
    if (window.sent.push([order.method, order.body ? JSON.parse(order.body).method : null]) === 1) await new Promise((done) => { window.release = done; });
    return real(path, options);
  };
})()"""


def test_whoever_leaves_the_view_leaves_no_session_behind(page: Page, running: Gateway) -> None:
    go(page, running, "mcp")
    page.js(HELD)
    connect(page, "/mcp")
    page.wait("Boolean(window.release)")
    page.js("document.querySelector('#nav a[href$=traffic]').click()")
    page.wait("document.querySelector('h1').textContent === 'Traffic'")
    page.js("window.release()")
    page.wait("window.sent.length > 2")
    assert page.js("window.sent") == [["POST", "initialize"], ["POST", "notifications/initialized"], ["DELETE", None]]


MARKDOWN = """# Shoes

There are **three** *red* ones, see [the list](https://shop.test/a) or [not](javascript:alert(1)).

- one
- two
  - inner

1. first
2. second

| size | left |
|------|------|
| 40   | `2`  |

```python
print("<b>no</b>")
```
> quoted
![picture](https://shop.test/x.png) <img src=x onerror=document.title='owned'>"""


def test_answers_are_markdown_and_nothing_in_them_is_markup(page: Page, running: Gateway) -> None:
    go(page, running, "playground")
    told = page.js(f"""(async () => {{
      const {{ markdown }} = await import('/ui/assets/markdown.js');
      const box = document.createElement('div');
      box.append(...markdown({json.dumps(MARKDOWN)}));
      document.querySelector('#view').append(box);
      const words = (tag) => [...box.querySelectorAll(tag)].map((one) => one.textContent);
      return {{ head: words('[role=heading]'), strong: words('strong'), em: words('em'), links: [...box.querySelectorAll('a')].map((one) => one.getAttribute('href')),
        items: words('ul ul li'), ordered: words('ol li'), cells: words('td'), code: words('pre code'), quote: words('blockquote'), live: words('img, script, b').length,
        text: box.textContent.includes('<img src=x') && box.textContent.includes('javascript:alert(1)') }};
    }})()""")
    assert told == {
        "head": ["Shoes"], "strong": ["three"], "em": ["red"], "links": ["https://shop.test/a", "https://shop.test/x.png"],
        "items": ["inner"], "ordered": ["first", "second"], "cells": ["40", "2"], "code": ['print("<b>no</b>")'], "quote": ["quoted"],
        "live": 0, "text": True,
    }  # fmt: skip


def test_hostile_markdown_ends_soon_and_stays_whole(page: Page, running: Gateway) -> None:
    """Deep nesting and long runs of marks: no error, and no letter of a plain text is lost."""
    go(page, running, "playground")
    texts = ["> " * 400 + "x", "- " * 400 + "x", "x" + "*" * 5000, "[" * 3000 + "](" * 3000, "x" + "`" * 4001, "_a" * 4000, "|" * 2000 + "\n" + "|-" * 2000, EVIL,
             "# " + " " * 20000 + "x", "```" + " " * 20000 + "!", "a|b\n" + "-" + " " * 20000 + "x", "[" * 60000, "![" * 30000, "y" + "`" * 20000 + "x" * 20000]  # fmt: skip
    told = page.js(f"""(async () => {{
      const {{ markdown }} = await import('/ui/assets/markdown.js');
      return {json.dumps(texts)}.map((text) => {{
        const box = document.createElement('div');
        box.append(...markdown(text));
        return [box.querySelectorAll('img, script').length, box.textContent.length > 0];
      }});
    }})()""")
    assert told == [[0, True]] * len(texts)


def test_two_models_answer_side_by_side(page: Page, running: Gateway) -> None:
    go(page, running, "playground")
    page.wait("document.querySelector('datalist option')")
    page.fill("Compare with", "slow")
    page.fill("Message", "Which shoes are **red**?")
    page.click("Send")
    page.wait("document.querySelectorAll('.turn.assistant .said').length === 2")
    page.wait("[...document.querySelectorAll('.turn.assistant .said')].every((one) => one.textContent === 'You said: Which shoes are red?')")
    assert page.js("[...document.querySelectorAll('.turn.assistant h3')].map((one) => one.textContent)") == ["sample", "slow"]
    assert page.js("document.querySelectorAll('.turn.assistant strong').length") == 2, "it is drawn as markdown"
    page.wait("[...document.querySelectorAll('.sides [role=status]')].every((one) => one.textContent.includes('tokens in'))")


# Relay requests whose first answer says one word and does not end.
STALLED = """(() => {
  const event = (words) => JSON.stringify({ data: `data: ${JSON.stringify({ choices: [{ delta: { content: words } }] })}\\n\\n` });
  const head = JSON.stringify({ status: 200, headers: [['content-type', 'text/event-stream']] });
  const real = window.fetch;
  window.sent = [];
  window.fetch = async (path, options) => {
    if (!String(path).endsWith('/relay')) return real(path, options);
    const first = window.sent.push(JSON.parse(JSON.parse(options.body).body)) === 1;
    return new Response(new ReadableStream({ start(stream) {
      const lines = first ? [head, event('Half')] : [head, event('Whole'), '{"end":true}'];
      stream.enqueue(new TextEncoder().encode(lines.map((one) => `${one}\\n`).join('')));
      if (first) options.signal.addEventListener('abort', () => stream.error(new DOMException('stopped', 'AbortError')));
      else stream.close();
    } }));
  };
})()"""


def test_a_new_conversation_has_nothing_of_the_one_before(page: Page, running: Gateway) -> None:
    """It can be begun while an answer still comes, which is stopped and belongs to nobody."""
    go(page, running, "playground")
    page.wait("document.querySelector('datalist option')")
    page.js(STALLED)
    page.fill("Message", "one")
    page.click("Send")
    page.wait("document.querySelector('.turn.assistant .said')?.textContent === 'Half'")
    page.click("New conversation")
    page.fill("Message", "two")
    page.click("Send")
    page.wait("document.querySelector('.turn.assistant .said')?.textContent === 'Whole'")
    assert page.js("window.sent[1].messages") == [{"role": "user", "content": "two"}]


def test_a_request_is_copied_as_a_command(page: Page, running: Gateway) -> None:
    go(page, running, "playground")
    page.wait("document.querySelector('datalist option')")
    page.fill("Credential", "sk-own-secret")
    page.fill("Message", "it's red")
    page.click("Copy as curl")
    page.wait("!document.querySelector('[aria-label=\"Command of curl\"]').hidden")
    command = page.js("document.querySelector('[aria-label=\"Command of curl\"]').textContent")
    assert command.startswith(f"curl -N 'http://127.0.0.1:{running.port}/v1/chat/completions'")
    assert '-H "authorization: Bearer $TOKEN"' in command
    assert "sk-own-secret" not in command
    assert "it'\\''s red" in command


# A picture of 3000 x 1000 pixels, put into the field for files as somebody who chooses it does.
PICTURE = """(async () => {
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [3000, 1000];
  canvas.getContext('2d').fillRect(0, 0, 2000, 500);
  const blob = await new Promise((done) => canvas.toBlob(done, 'image/png'));
  const data = new DataTransfer();
  data.items.add(new File([blob], 'shoe.png', { type: 'image/png' }));
  data.items.add(new File(['no picture'], 'words.png', { type: 'image/png' }));
  const field = document.querySelector('input[type=file]');
  field.files = data.files;
  field.dispatchEvent(new Event('change'));
})()"""


def test_pictures_are_made_small_and_sent(page: Page, running: Gateway) -> None:
    go(page, running, "playground")
    page.wait("document.querySelector('datalist option')")
    page.js(PICTURE)
    page.wait("document.querySelector('.attached canvas')")
    page.wait_text("words.png is no picture that this browser can read")
    page.js("""(() => { const real = window.fetch; window.fetch = (path, options) => {
      if (String(path).endsWith('/relay')) window.sent = JSON.parse(JSON.parse(options.body).body);
      return real(path, options); }; })()""")
    page.fill("Message", "What is this?")
    page.click("Send")
    page.wait("window.sent")
    content = page.js("window.sent.messages.at(-1).content")
    assert [one["type"] for one in content] == ["text", "image_url"]
    assert content[1]["image_url"]["url"].startswith("data:image/")
    page.wait("document.querySelector('.turn.user canvas')")
    assert page.js("((one) => one.width <= 220 && one.height < one.width)(document.querySelector('.turn.user canvas'))")
    page.wait_text(" in all")


# The same with noise, which no format makes small.
NOISE = """(async () => {
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [1024, 1024];
  const pixels = new ImageData(1024, 1024);
  let state = 1;
  for (let at = 0; at < pixels.data.length; at += 1) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    pixels.data[at] = at % 4 === 3 ? 255 : state >>> 24;
  }
  canvas.getContext('2d').putImageData(pixels, 0, 0);
  const blob = await new Promise((done) => canvas.toBlob(done, 'image/png'));
  const { picture } = await import('/ui/assets/pictures.js');
  return (await picture(new File([blob], 'noise.png', { type: 'image/png' }))).url.length;
})()"""


def test_four_pictures_fit_into_a_request(page: Page, running: Gateway) -> None:
    """A request of the page has at most 1 MiB."""
    go(page, running, "playground")
    assert page.js(NOISE) <= 180_000


# Answers of the relay: a call of a tool, streamed in pieces, and then words.
ANSWERS = """(() => {
  const event = (one) => JSON.stringify({ data: `data: ${JSON.stringify(one)}\\n\\n` });
  const call = (more) => event({ choices: [{ delta: { tool_calls: [{ index: 0, ...more }] } }] });
  const head = JSON.stringify({ status: 200, headers: [['content-type', 'text/event-stream']] });
  const answers = [
    [head, call({ id: 'c1', function: { name: 'add', arguments: '{"a":' } }), call({ function: { arguments: ' 1}' } }), '{"end":true}'],
    [head, event({ choices: [{ delta: { content: 'It is **2**.' } }] }), '{"end":true}'],
  ];
  window.sent = [];
  const real = window.fetch;
  window.fetch = async (path, options) => {
    if (!String(path).endsWith('/relay')) return real(path, options);
    window.sent.push(JSON.parse(JSON.parse(options.body).body));
    return new Response(answers.shift().join('\\n'));
  };
})()"""


def test_tools_are_offered_called_and_answered(page: Page, running: Gateway) -> None:
    go(page, running, "playground")
    page.wait("document.querySelector('datalist option')")
    page.js(ANSWERS)
    page.fill("Tools", "[{")
    page.wait_text("Tools: ")
    page.fill("Tools", '[{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}]')
    page.fill("Message", "One and one?")
    page.click("Send")
    page.wait("document.querySelector('[aria-label=\"Call of add\"]')?.textContent === 'add({\"a\": 1})'")
    page.js("document.querySelector('[aria-label=\"Result of add\"]').value = '2'")
    page.click("Send results")
    page.wait("[...document.querySelectorAll('.turn.assistant strong')].some((one) => one.textContent === '2')")
    sent = page.js("window.sent")
    assert sent[0]["tools"][0]["function"]["name"] == "add"
    assert sent[1]["messages"][1]["tool_calls"] == [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}]
    assert sent[1]["messages"][2] == {"role": "tool", "tool_call_id": "c1", "content": "2"}


def test_a_traced_request_has_headers(page: Page, running: Gateway) -> None:
    go(page, running, "trace")
    page.wait("document.querySelector('select').options.length > 0")
    page.click("Headers and body", "summary")
    page.fill("Path", "/catalogue/boots")
    page.fill("Headers", "x-team: search\nno header")
    page.click("Send and trace")
    page.wait_text('"no header" is no header')
    page.fill("Headers", "x-team: search\nx-more: a\nx-more: b")
    page.click("Send and trace")
    page.wait_text("Complete:")
    page.click("Request state", ".waterfall button")
    page.wait("/x-team[^]*search/.test(document.querySelector('[aria-label=\"Details of the chosen event\"]').textContent)")
    assert "a, b" in page.js("document.querySelector('[aria-label=\"Details of the chosen event\"]').textContent")
