"""A model on loopback that real coding agents can talk to; it needs no account and no network.

It speaks Anthropic Messages, OpenAI Chat Completions, OpenAI Responses and Gemini's generateContent. What it
answers is chosen by markers in the last text of the user:

    %%run:COMMAND%%       calls the agent's shell tool: the agent asks for permission
    %%esc%%               with it: also asks to leave the sandbox (Codex)
    %%write:PATH:TEXT%%   calls the tool that writes files
    %%slow:SECONDS%%      streams an answer of many lines over so many seconds
    %%hang:SECONDS%%      sends nothing for so long
    %%err:STATUS%%        fails with this HTTP status

A text without markers that is a prompt of `synapse doctor` is obeyed. Everything else is answered by
`ECHO[N chars M lines]: ` and the beginning of the text. After a tool it is `TOOL-RESULT: ` and its output.
An agent whose requests offer no tools gets a block of shell code to run.
"""

from __future__ import annotations

import json
import re
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

JSON = dict[str, Any]
Events = Iterator[tuple[str, JSON | str]]
"""Server-sent events: their name, which may be empty, and their data."""

CHUNK = 12  # characters of an answer per event
CHUNK_PAUSE = 0.05
LONGEST_ECHO = 160
LOGGED = 20_000  # characters of a prompt in the log
CLOSED = "client closed stream early"

# What a request says --------------------------------------------------------------------------------------


@dataclass(slots=True)
class Turn:
    """A request, whichever API it came by."""

    text: str = ""  # the last text of the user
    system: str = ""
    result: str | None = None  # the output of the tool that was called last
    tools: dict[str, JSON] = field(default_factory=dict)  # name: schema of its arguments
    schema: JSON | None = None  # the answer must be JSON of this schema
    model: str = ""
    stream: bool = False

    @property
    def prompt(self) -> bool:
        """Whether it is part of the conversation, and not one of the requests that agents make beside it."""
        return bool(self.tools) or _BLOCKS.search(self.system) is not None


_BLOCKS = re.compile(r"```(?:bash|shell)")
"""In the instructions of an agent whose model calls no tools: it runs blocks of shell code."""


def texts_of(content: object) -> list[str]:
    """The texts of a message's content: a string, or parts that may have a `text`."""
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") if isinstance(part, dict) else part for part in parts)
    return [text for text in texts if isinstance(text, str)]


def _is_reminder(text: str) -> bool:
    """Whether an agent added a text in the user's name."""
    return text.lstrip().startswith(("<system-reminder>", "<environment_details>"))


def since_the_answer(messages: Iterable[JSON], answers: str) -> list[JSON]:
    """What follows the last answer of the model, latest first."""
    found: list[JSON] = []
    for message in reversed(list(messages)):
        if message.get("role") == answers:
            break
        found.append(message)
    return found


def anthropic_turn(body: JSON) -> Turn:
    turn = Turn(system=" ".join(texts_of(body.get("system"))), stream=bool(body.get("stream")))
    turn.tools = {tool.get("name", "?"): tool.get("input_schema") or {} for tool in body.get("tools") or ()}
    for message in since_the_answer(body.get("messages") or (), "assistant"):
        if message.get("role") != "user":
            continue
        content = message.get("content")
        parts = [{"text": content}] if isinstance(content, str) else content or []
        for part in reversed(parts):
            if part.get("type") == "tool_result" and not turn.text and turn.result is None:
                turn.result = "\n".join(texts_of(part.get("content")))
            elif not turn.text and not _is_reminder(text := part.get("text") or ""):
                turn.text = text
    form = (body.get("output_config") or {}).get("format") or body.get("output_format") or {}
    turn.schema = form.get("schema") if form.get("type") == "json_schema" else None
    return turn


def chat_turn(body: JSON) -> Turn:
    messages = body.get("messages") or []
    turn = Turn(stream=bool(body.get("stream")))
    for tool in body.get("tools") or ():
        function = tool.get("function") or tool
        turn.tools[function.get("name", "?")] = function.get("parameters") or {}
    turn.system = " ".join(
        text
        for message in messages
        if message.get("role") in ("system", "developer")
        for text in texts_of(message.get("content"))
    )
    for message in since_the_answer(messages, "assistant"):
        texts = texts_of(message.get("content"))
        if message.get("role") == "tool":
            turn.result = " ".join(texts) + (turn.result or "")
        elif message.get("role") == "user" and (own := [text for text in texts if not _is_reminder(text)]):
            turn.text = own[-1]
            break
    form = body.get("response_format") or {}
    if form.get("type") in ("json_schema", "json_object"):
        turn.schema = (form.get("json_schema") or {}).get("schema") or {}
    return turn


def responses_turn(body: JSON) -> Turn:
    turn = Turn(system=body.get("instructions") or "", stream=bool(body.get("stream")))
    for tool in body.get("tools") or ():
        turn.tools[tool.get("name") or tool.get("type")] = tool.get("parameters") or {}
    items = body.get("input") or []
    for item in [{"role": "user", "content": items}] if isinstance(items, str) else reversed(items):
        kind, role = item.get("type", "message"), item.get("role")
        texts = texts_of(item.get("content"))
        if kind.endswith("call_output"):
            output = item.get("output")
            turn.result = output if isinstance(output, str) else json.dumps(output)
        elif role == "user" and texts:
            turn.text = texts[-1]
            break
        elif role == "assistant" or (kind != "message" and turn.result is None):
            break
    form = (body.get("text") or {}).get("format") or {}
    turn.schema = (form.get("schema") or {}) if form.get("type") == "json_schema" else None
    return turn


def gemini_turn(body: JSON) -> Turn:
    turn = Turn(system=" ".join(texts_of((body.get("systemInstruction") or {}).get("parts"))))
    for tool in body.get("tools") or ():
        for function in tool.get("functionDeclarations") or ():
            schema = function.get("parametersJsonSchema") or function.get("parameters") or {}
            turn.tools[function.get("name")] = schema
    for message in since_the_answer(body.get("contents") or (), "model"):
        parts = message.get("parts") or []
        results = [part["functionResponse"].get("response") for part in parts if "functionResponse" in part]
        if results and not turn.text:
            turn.result = json.dumps(results)
        turn.text = turn.text or (texts_of(parts) or [""])[-1]
    config = body.get("generationConfig") or {}
    if config.get("responseMimeType") == "application/json":
        turn.schema = config.get("responseJsonSchema") or config.get("responseSchema") or {}
    return turn


# What it is answered --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answer:
    """A text, the call of a tool, or a failure."""

    text: str = ""
    tool: str = ""
    arguments: JSON = field(default_factory=dict)
    status: int = 200
    seconds: float = 0.0  # over which the text is streamed
    silence: float = 0.0  # seconds before the first byte of it

    def pieces(self) -> Iterator[str]:
        chunks = [self.text[at : at + CHUNK] for at in range(0, len(self.text), CHUNK)] or [""]
        for chunk in chunks:
            yield chunk
            time.sleep(self.seconds / len(chunks) if self.seconds else CHUNK_PAUSE)


SHELL_TOOLS = (
    *("Bash", "bash", "exec_command", "shell_command", "shell", "run_shell_command", "run_in_terminal"),
    *("execute_command", "execute_bash", "run_commands", "terminal", "run_terminal_command"),
)
WRITE_TOOLS = ("Write", "write", "write_file", "create", "apply_patch", "edit")
_COMMAND_KEYS = ("cmd", "command", "commands", "script")
_PATH_KEYS = ("file_path", "filePath", "path", "filename")
_CODES = re.compile(r"\b[A-HJ-NP-Z2-9]{5}\b")
"""The codes in the prompts of `synapse doctor`."""
_RUN = re.compile(r"Run exactly this command with your shell tool\b.*? then stop\. (.*)", re.DOTALL)
APPENDED = re.compile(r"\n\n(?:To suggest changes|# \*SEARCH/REPLACE)")
"""What aider appends to the latest prompt."""
SLOW = 60.0


def marker(name: str, text: str) -> str | None:
    found = re.search(rf"%%{name}:(.*?)%%", text, re.DOTALL)
    return found[1].strip() if found else None


def decide(turn: Turn) -> Answer:
    text = turn.text
    if turn.tools and (status := marker("err", text)):
        return Answer(status=int(status))
    if turn.schema is not None:
        return Answer(json.dumps(example_of(turn.schema)))
    if turn.result is not None:
        return Answer(f"TOOL-RESULT: {turn.result.strip()[:200]}")
    if not turn.prompt and "title" in turn.system[:1500]:
        return Answer("Fake title")
    if not turn.tools:
        text = APPENDED.split(text)[0]
    silence = float(marker("hang", text) or 0)
    if command := marker("run", text):
        return shell_call(turn, command, escalate="%%esc%%" in text, silence=silence)
    if (file := marker("write", text)) and (call := write_call(turn, file, silence)):
        return call
    return obeyed(turn, text) or echo(text, float(marker("slow", text) or 0), silence)


def obeyed(turn: Turn, text: str) -> Answer | None:
    """The answer to a prompt of `synapse doctor`, as any model gives it."""
    if command := _RUN.search(text):
        return shell_call(
            turn, command[1].strip(), escalate="escalated permissions" in " ".join(text.split())
        )
    if "Count from 1 to 400" in text:
        return echo(text, SLOW)
    codes = _CODES.findall(text)
    if len(codes) < 2 or "Use no tools." not in text:
        return None
    if "two lines" in text:
        return Answer(f"{codes[0]}\n{codes[1]}")
    return Answer(f"{codes[0]}-{codes[-1]}")


def echo(text: str, seconds: float = 0.0, silence: float = 0.0) -> Answer:
    body = f"ECHO[{len(text)} chars {text.count(chr(10)) + 1} lines]: {text[:LONGEST_ECHO]}"
    if seconds:
        rows = (
            f"slow line {row} {' '.join(re.findall('....', uuid.uuid4().hex))}"
            for row in range(int(seconds * 2))
        )
        body = "\n".join((body, *rows, "END-OF-SLOW"))
    return Answer(body, seconds=seconds, silence=silence)


def properties_of(turn: Turn, tool: str) -> JSON:
    return turn.tools[tool].get("properties") or {}


def shell_call(turn: Turn, command: str, *, escalate: bool = False, silence: float = 0.0) -> Answer:
    tool = next((name for name in SHELL_TOOLS if name in turn.tools), None)
    if tool is None:
        language = "shell" if "```shell" in turn.system else "bash"
        return Answer(f"Run this:\n\n```{language}\n{command}\n```\n", silence=silence)
    known = properties_of(turn, tool)
    key = next((key for key in _COMMAND_KEYS if key in known), "command")
    kind = str((known.get(key) or {}).get("type")).lower()
    whole = [command] if key == "commands" else ["bash", "-lc", command]
    arguments: JSON = {key: whole if kind == "array" else command}
    if escalate and "sandbox_permissions" in known:
        arguments |= {"sandbox_permissions": "require_escalated", "justification": "test needs it"}
    return Answer(tool=tool, arguments=filled(turn, tool, arguments), silence=silence)


def write_call(turn: Turn, file: str, silence: float) -> Answer | None:
    path, _, text = file.partition(":")
    for tool in (name for name in WRITE_TOOLS if name in turn.tools):
        known = properties_of(turn, tool)
        arguments: JSON = {key: path for key in _PATH_KEYS if key in known}
        arguments |= {key: text for key in ("content", "file_text", "contents") if key in known}
        if len(arguments) > 1:
            return Answer(tool=tool, arguments=filled(turn, tool, arguments), silence=silence)
    return None


def filled(turn: Turn, tool: str, arguments: JSON) -> JSON:
    """Arguments with something for each that is required besides."""
    known = properties_of(turn, tool)
    for key in turn.tools[tool].get("required") or ():
        if key not in arguments:
            values = {"integer": 10, "number": 10, "boolean": False}
            kind = str((known.get(key) or {}).get("type")).lower()
            arguments[key] = values.get(kind, "run a test command")
    return arguments


def example_of(schema: JSON) -> Any:
    """Any value of a JSON schema."""
    if choices := schema.get("enum"):
        return "user" if "user" in choices else choices[0]
    if choices := schema.get("anyOf"):
        return example_of(choices[0])
    kind = schema.get("type") or "object"
    kind = str(kind[0] if isinstance(kind, list) else kind).lower()
    if kind == "object":
        return {name: example_of(each) for name, each in (schema.get("properties") or {}).items()}
    return {"array": [], "string": "fake", "number": 1, "integer": 1, "boolean": False}.get(kind)


# Each API's words for an answer ---------------------------------------------------------------------------


def unique(prefix: str) -> str:
    return prefix + uuid.uuid4().hex[:20]


def anthropic_body(turn: Turn, answer: Answer) -> JSON:
    text = {"type": "text", "text": answer.text}
    use = {"type": "tool_use", "id": unique("toolu_"), "name": answer.tool, "input": answer.arguments}
    usage = dict.fromkeys(("cache_creation_input_tokens", "cache_read_input_tokens"), 0)
    return {
        "id": unique("msg_"),
        "type": "message",
        "role": "assistant",
        "model": turn.model,
        "content": [use if answer.tool else text],
        "stop_reason": "tool_use" if answer.tool else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 100, "output_tokens": 1, **usage},
    }


def anthropic_events(turn: Turn, answer: Answer) -> Events:
    time.sleep(answer.silence)
    for event in _anthropic_events(anthropic_body(turn, answer), answer):
        yield event["type"], event


def _anthropic_events(body: JSON, answer: Answer) -> Iterator[JSON]:
    yield {"type": "message_start", "message": body | {"content": [], "stop_reason": None}}
    yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    for piece in ["I will use a tool."] if answer.tool else answer.pieces():
        delta = {"type": "text_delta", "text": piece}
        yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    if answer.tool:
        yield {"type": "content_block_start", "index": 1, "content_block": body["content"][0] | {"input": {}}}
        for piece in Answer(json.dumps(answer.arguments)).pieces():
            delta = {"type": "input_json_delta", "partial_json": piece}
            yield {"type": "content_block_delta", "index": 1, "delta": delta}
        yield {"type": "content_block_stop", "index": 1}
    end = {"stop_reason": body["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": end, "usage": {"output_tokens": 20}}
    yield {"type": "message_stop"}


_CHAT_USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}


def _chat_call(answer: Answer) -> JSON:
    function = {"name": answer.tool, "arguments": json.dumps(answer.arguments)}
    return {"id": unique("call_"), "type": "function", "function": function}


def _chat(turn: Turn, kind: str, choices: list[JSON], **more: Any) -> JSON:
    about = {"id": unique("chatcmpl-"), "object": kind, "created": int(time.time()), "model": turn.model}
    return {**about, "choices": choices, **more}


def chat_body(turn: Turn, answer: Answer) -> JSON:
    message: JSON = {"role": "assistant", "content": None if answer.tool else answer.text}
    if answer.tool:
        message["tool_calls"] = [_chat_call(answer)]
    reason = "tool_calls" if answer.tool else "stop"
    choice = {"index": 0, "message": message, "finish_reason": reason}
    return _chat(turn, "chat.completion", [choice], usage=_CHAT_USAGE)


def chat_events(turn: Turn, answer: Answer) -> Events:
    time.sleep(answer.silence)
    number = unique("chatcmpl-")

    def chunk(delta: JSON, reason: str | None = None) -> tuple[str, JSON]:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return "", _chat(turn, "chat.completion.chunk", [choice]) | {"id": number}

    yield chunk({"role": "assistant", "content": "I will use a tool." if answer.tool else ""})
    if answer.tool:
        yield chunk({"tool_calls": [_chat_call(answer) | {"index": 0}]})
        yield chunk({}, "tool_calls")
    else:
        yield from (chunk({"content": piece}) for piece in answer.pieces())
        yield chunk({}, "stop")
    yield "", _chat(turn, "chat.completion.chunk", [], usage=_CHAT_USAGE) | {"id": number}
    yield "", "[DONE]"


def responses_body(turn: Turn, answer: Answer) -> JSON:
    if answer.tool:
        call = {"call_id": unique("call_"), "name": answer.tool, "arguments": json.dumps(answer.arguments)}
        item: JSON = {"id": unique("fc_"), "type": "function_call", "status": "completed", **call}
    else:
        part = {"type": "output_text", "text": answer.text, "annotations": []}
        message = {"type": "message", "role": "assistant", "status": "completed", "content": [part]}
        item = {"id": unique("msg_"), **message}
    nothing = dict.fromkeys(("error", "incomplete_details", "instructions"))
    choices = {"parallel_tool_calls": True, "temperature": 1, "tool_choice": "auto", "tools": [], "top_p": 1}
    usage = {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 120,
    }
    about = {
        "id": unique("resp_"),
        "object": "response",
        "created_at": int(time.time()),
        "status": "completed",
    }
    return {
        **about,
        "model": turn.model,
        "output": [item],
        "usage": usage,
        "metadata": {},
        **nothing,
        **choices,
    }


def responses_events(turn: Turn, answer: Answer) -> Events:
    body = responses_body(turn, answer)
    for number, event in enumerate(_responses_events(body, answer)):
        yield event["type"], event | {"sequence_number": number}


def _responses_events(body: JSON, answer: Answer) -> Iterator[JSON]:
    (item,) = body["output"]
    about = {"item_id": item["id"], "output_index": 0}
    opened = {"status": "in_progress", "arguments" if answer.tool else "content": "" if answer.tool else []}
    yield {
        "type": "response.created",
        "response": body | {"status": "in_progress", "output": [], "usage": None},
    }
    time.sleep(answer.silence)
    yield {"type": "response.output_item.added", "output_index": 0, "item": item | opened}
    if answer.tool:
        yield {"type": "response.function_call_arguments.delta", **about, "delta": item["arguments"]}
        yield {"type": "response.function_call_arguments.done", **about, "arguments": item["arguments"]}
    else:
        (part,) = item["content"]
        about["content_index"] = 0
        yield {"type": "response.content_part.added", **about, "part": part | {"text": ""}}
        for piece in answer.pieces():
            yield {"type": "response.output_text.delta", **about, "delta": piece}
        yield {"type": "response.output_text.done", **about, "text": answer.text}
        yield {"type": "response.content_part.done", **about, "part": part}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield {"type": "response.completed", "response": body}


def gemini_body(turn: Turn, answer: Answer, *, last: bool = True) -> JSON:
    call = {"functionCall": {"name": answer.tool, "args": answer.arguments}}
    candidate: JSON = {
        "content": {"role": "model", "parts": [call if answer.tool else {"text": answer.text}]}
    }
    candidate |= {"index": 0, "finishReason": "STOP"} if last else {"index": 0}
    usage = {"promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120}
    return {
        "candidates": [candidate],
        "usageMetadata": usage,
        "modelVersion": "fake",
        "responseId": unique(""),
    }


def gemini_events(turn: Turn, answer: Answer) -> Events:
    time.sleep(answer.silence)
    left = len(answer.text)
    for piece in [""] if answer.tool else answer.pieces():
        left -= len(piece)
        part = answer if answer.tool else Answer(piece)
        yield "", gemini_body(turn, part, last=left <= 0)


# The server -----------------------------------------------------------------------------------------------

APIS = {
    "/messages": (anthropic_turn, anthropic_body, anthropic_events),
    "/chat/completions": (chat_turn, chat_body, chat_events),
    "/responses": (responses_turn, responses_body, responses_events),
    ":generateContent": (gemini_turn, gemini_body, gemini_events),
    ":streamGenerateContent": (gemini_turn, gemini_body, gemini_events),
}
COUNTS = {":countTokens": {"totalTokens": 100}, "/count_tokens": {"input_tokens": 100}}
MODEL = {"id": "fake-model", "object": "model", "created": 0, "owned_by": "fake"}


class FakeModel(ThreadingHTTPServer):
    """Serves from its creation; one line of JSON per request is appended to the log.

    A line has the prompt (`last_user`), the output of the last tool (`tool_result`), the whole request
    (`body`) and whether it is one of the conversation (`prompt`). When the agent closes a stream before its
    end, another line notes it.
    """

    daemon_threads = True

    def __init__(self, log: Path | None = None, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self._log = log
        self._lock = threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def log(self, **entry: object) -> None:
        if self._log is not None:
            line = json.dumps({"t": time.time(), **entry}, ensure_ascii=False)
            with self._lock, self._log.open("a", encoding="utf-8") as file:
                file.write(line + "\n")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FakeModel

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        pass

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        self.server.log(path=self.path)
        if self.path.split("?")[0].endswith("/models"):
            self._answer({"object": "list", "models": [], "data": [MODEL]})
        else:
            self._answer({"error": {"message": "no such path"}}, 404)

    def do_POST(self) -> None:
        raw = self._read()
        path = self.path.split("?")[0]
        try:
            body = json.loads(raw or b"{}")
        except ValueError:
            self.server.log(path=self.path, note="not JSON")
            self._answer({"error": {"message": "not JSON"}}, 400)
            return
        for end, count in COUNTS.items():
            if path.endswith(end):
                self._answer(count)
                return
        api = next((end for end in APIS if path.endswith(end)), None)
        if api is None:
            self.server.log(path=self.path, note="unknown", body=body)
            self._answer({"error": {"message": "no such path"}}, 404)
            return
        try:
            self._turn(api, body)
        except (BrokenPipeError, ConnectionResetError):
            self.server.log(path=self.path, note=CLOSED)
            self.close_connection = True

    def _turn(self, end: str, body: JSON) -> None:
        read, whole, events = APIS[end]
        turn = read(body)
        turn.model = body.get("model") or ""
        turn.stream = turn.stream or end == ":streamGenerateContent"
        answer = decide(turn)
        self.server.log(
            path=self.path,
            last_user=turn.text[-LOGGED:],
            tool_result=turn.result,
            prompt=turn.prompt,
            body=body,
        )
        if answer.status != 200:
            error = {"type": "api_error", "message": f"fake error {answer.status}", "code": answer.status}
            self._answer({"type": "error", "error": error}, answer.status)
        elif turn.stream:
            self._stream(events(turn, answer))
        else:
            self._answer(whole(turn, answer))

    def _read(self) -> bytes:
        if "chunked" not in self.headers.get("transfer-encoding", ""):
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        raw = b""
        while size := int(self.rfile.readline().strip() or b"0", 16):
            raw += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return raw

    def _answer(self, content: Mapping[str, object], status: int = 200) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, events: Events) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("cache-control", "no-cache")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        for name, data in events:
            text = data if isinstance(data, str) else json.dumps(data)
            event = f"event: {name}\n" if name else ""
            self.wfile.write(f"{event}data: {text}\n\n".encode())
            self.wfile.flush()
