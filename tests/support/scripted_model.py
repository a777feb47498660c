"""A language model for tests and benchmarks: real wire formats on a real socket, in a process of its own.

Answers are prepared beforehand. A conversation of ``benchmark_conversation(n)`` names its number, and the
model answers with the five facts that its user stated. Faults are played first, in their order.
"""

import argparse
import asyncio
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import TracebackType
from typing import Final, Self, cast

import httpx

CHAT_PATH: Final = "/v1/chat/completions"
GENERATE_PATH: Final = "/api/generate"
MESSAGES_PATH: Final = "/v1/messages"
GEMINI_ENDING: Final = ":generateContent"
EMBED_PATH: Final = "/embed"
EMBEDDINGS_PATH: Final = "/v1/embeddings"

DIFFERENT_ANSWERS: Final = 512
NOTHING: Final = json.dumps({"memories": [], "nothing_to_extract": True, "extraction_notes": ""})

_FILE: Final = re.compile(rb"file QX-(\d{1,9})\b")
_CITIES: Final = ("Lisbon", "Porto", "Gdansk", "Turin", "Leeds", "Bergen", "Ghent", "Split")
_JOBS: Final = ("nurse", "welder", "librarian", "pilot", "baker", "surveyor", "luthier", "chemist")
_PETS: Final = ("cat", "dog", "parrot", "tortoise", "ferret", "pony", "rabbit", "gecko")
_NAMES: Final = ("Biscuit", "Mochi", "Pixel", "Juno", "Olive", "Ziggy", "Clover", "Otis")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one call gets: a text of the model, or a fault of the wire."""

    text: str | None = None
    status: int = 200
    retry_after: str | None = None
    body: str | None = None
    hang: bool = False
    cut: bool = False
    drop: bool = False
    finish_reason: str = "stop"

    @classmethod
    def says(cls, text: str, *, finish_reason: str = "stop") -> Self:
        """Answer with ``text`` in the wire format that was asked for."""
        return cls(text=text, finish_reason=finish_reason)

    @classmethod
    def fails(cls, status: int, *, retry_after: str | None = None) -> Self:
        """Answer with an error status."""
        return cls(status=status, retry_after=retry_after, body='{"error":{"message":"scripted"}}')

    @classmethod
    def sends(cls, body: str) -> Self:
        """Answer 200 with ``body`` as it is."""
        return cls(body=body)


HANGS: Final = Step(hang=True)
CUTS_THE_STREAM: Final = Step(cut=True)
DROPS_THE_CONNECTION: Final = Step(drop=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How the model behaves; everything crosses to its process as JSON."""

    latency: float = 0.0
    steps: tuple[Step, ...] = ()
    otherwise: str = NOTHING
    refused_formats: tuple[str, ...] = ()
    dimensions: int = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the model was asked; ``files`` are the numbers of the conversations, in the order of the calls."""

    calls: int
    files: tuple[int, ...]
    most_at_once: int
    by_path: Mapping[str, int]
    bodies: tuple[str, ...]
    tokens: tuple[str, ...]


def benchmark_facts(number: int) -> list[dict[str, str]]:
    """Return the five facts that conversation ``number`` states, with the words that state them."""
    number %= DIFFERENT_ANSWERS
    one, two = number % 8, number // 8 % 8
    three = number // 64 % 8
    street = f"{number % 97 + 1} Harbour Lane, flat {number}"
    pet = f"{_PETS[three]} called {_NAMES[one]} {number}"
    rows = (
        ("home_city", _CITIES[one], "personal_info", f"I live in {_CITIES[one]}"),
        ("job_title", _JOBS[two], "work", f"I work as a {_JOBS[two]}"),
        ("pet", pet, "relationship", f"I have a {pet}"),
        ("address", street, "personal_info", f"my address is {street}"),
        ("goal", f"to read {number + 3} books this year", "goal",
         f"my goal is to read {number + 3} books this year"),
    )  # fmt: skip
    return [
        {"key": key, "value": value, "category": category, "said": said}
        for key, value, category, said in rows
    ]


def benchmark_conversation(number: int) -> list[tuple[str, str]]:
    """Return the eight messages of conversation ``number`` as (role, text)."""
    said = [fact["said"] for fact in benchmark_facts(number)]
    return [
        ("user", f"Hello, it is about file QX-{number}. {said[0]}."),
        ("assistant", "Good to hear from you. What do you do there?"),
        ("user", f"Well, {said[1]} and I like it a lot."),
        ("assistant", "Is there somebody at home who keeps you company?"),
        ("user", f"Yes, {said[2]}. For the delivery, {said[3]}."),
        ("assistant", "Noted. Anything you look forward to?"),
        ("user", f"Could be more time to read: {said[4]}."),
        ("assistant", "Then let us get you there."),
    ]


def benchmark_answer(number: int) -> str:
    """Return the answer of the model to conversation ``number``."""
    memories: list[dict[str, object]] = [
        {
            "category": fact["category"],
            "fact_key": fact["key"],
            "fact_value": fact["value"],
            "content": f"The user says: {fact['said']}.",
            "importance": 7,
            "confidence": 0.95,
            "memory_type": "long",
            "expires_at": None,
            "valid_from": None,
            "source_message_ids": [],
            "source_excerpt": fact["said"],
            "reasoning": "said in plain words",
        }
        for fact in benchmark_facts(number)
    ]
    return json.dumps({"memories": memories, "nothing_to_extract": False, "extraction_notes": ""})


class ScriptedModel:
    """Runs the model's process: ``async with ScriptedModel(...) as model: model.url``."""

    def __init__(
        self,
        *,
        steps: Sequence[Step] = (),
        latency: float = 0.0,
        otherwise: str = NOTHING,
        refused_formats: Sequence[str] = (),
        dimensions: int = 512,
    ) -> None:
        self._plan = Plan(
            latency=latency,
            steps=tuple(steps),
            otherwise=otherwise,
            refused_formats=tuple(refused_formats),
            dimensions=dimensions,
        )
        self._process: asyncio.subprocess.Process | None = None
        self._port = 0

    @property
    def url(self) -> str:
        """The address without a path."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def pid(self) -> int:
        """The id of the model's process, to subtract its CPU."""
        assert self._process is not None
        return self._process.pid

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, __file__, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asdict(self._plan)).encode() + b"\n")
        self._port = int(await self._process.stdout.readline())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            process.stdin.close()
            await process.communicate()

    async def seen(self) -> Seen:
        """Return what the model was asked so far."""
        async with httpx.AsyncClient(trust_env=False) as client:
            raw = (await client.get(f"{self.url}/seen")).json()
        return Seen(
            calls=raw["calls"],
            files=tuple(raw["files"]),
            most_at_once=raw["most_at_once"],
            by_path=raw["by_path"],
            bodies=tuple(raw["bodies"]),
            tokens=tuple(raw["tokens"]),
        )

    async def plays(self, *steps: Step) -> None:
        """Play ``steps`` from the next call on, instead of what was still to come."""
        async with httpx.AsyncClient(trust_env=False) as client:
            response = await client.post(f"{self.url}/steps", json=[asdict(step) for step in steps])
        assert response.status_code == 200


# The process of the model. Below here nothing is called from tests.

_KEPT_BODIES: Final = 200


@dataclass(slots=True)
class _Served:
    plan: Plan
    steps: list[Step]
    answers: Mapping[Callable[..., bytes], Sequence[bytes]]
    calls: int = 0
    files: list[int] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0
    by_path: dict[str, int] = field(default_factory=dict)
    bodies: list[str] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)


def _chat(text: str, finish_reason: str = "stop") -> bytes:
    choice = {"index": 0, "finish_reason": finish_reason, "message": {"role": "assistant", "content": text}}
    usage = {"prompt_tokens": 900, "completion_tokens": 300, "total_tokens": 1200}
    return json.dumps(
        {"id": "scripted", "object": "chat.completion", "choices": [choice], "usage": usage}
    ).encode()


def _message(text: str, finish_reason: str = "stop") -> bytes:
    reason = {"stop": "end_turn", "length": "max_tokens"}.get(finish_reason, finish_reason)
    usage = {"input_tokens": 900, "output_tokens": 300}
    content = [{"type": "text", "text": text}]
    return json.dumps(
        {"type": "message", "role": "assistant", "content": content, "stop_reason": reason, "usage": usage}
    ).encode()


def _content(text: str, finish_reason: str = "stop") -> bytes:
    reason = {"stop": "STOP", "length": "MAX_TOKENS"}.get(finish_reason, finish_reason)
    candidate = {"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": reason}
    usage = {"promptTokenCount": 900, "candidatesTokenCount": 300}
    return json.dumps({"candidates": [candidate], "usageMetadata": usage}).encode()


def _written(path: str) -> Callable[..., bytes]:
    """Return how an answer is written in the wire format that ``path`` speaks."""
    if path.endswith(GEMINI_ENDING):
        return _content
    return {GENERATE_PATH: _generated, MESSAGES_PATH: _message}.get(path, _chat)


def _generated(text: str, finish_reason: str = "stop") -> bytes:
    return json.dumps({"text": text, "finish_reason": finish_reason}).encode()


def _reply(body: bytes, *, status: int = 200, retry_after: str | None = None) -> bytes:
    extra = f"retry-after: {retry_after}\r\n" if retry_after is not None else ""
    head = (
        f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{extra}content-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class _Wire(asyncio.Protocol):
    """Raw HTTP/1.1 with keep-alive: as little work a call as can be."""

    def __init__(self, served: _Served) -> None:
        self._served = served
        self._buffer = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are none by inheritance.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end]
            length = re.search(rb"(?i)content-length: *(\d+)", head)
            size = int(length.group(1)) if length else 0
            if len(self._buffer) < end + 4 + size:
                return
            body, self._buffer = self._buffer[end + 4 : end + 4 + size], self._buffer[end + 4 + size :]
            self._handle(head, body)

    def _handle(self, head: bytes, body: bytes) -> None:
        path = head.split(b" ", 2)[1].decode()
        if path == "/seen":
            served = self._served
            told = {
                "calls": served.calls,
                "files": served.files,
                "most_at_once": served.most_at_once,
                "by_path": served.by_path,
                "bodies": served.bodies,
                "tokens": served.tokens,
            }
            self._send(_reply(json.dumps(told).encode()))
        elif path == "/steps":
            self._served.steps[:] = [Step(**step) for step in json.loads(body)]
            self._send(_reply(b"{}"))
        else:
            self._count(path, head, body)
            self._play(path, body)

    def _count(self, path: str, head: bytes, body: bytes) -> None:
        served = self._served
        served.calls += 1
        served.at_once += 1
        served.most_at_once = max(served.most_at_once, served.at_once)
        found = _FILE.search(body)
        served.files.append(int(found.group(1)) if found else -1)
        served.by_path[path] = served.by_path.get(path, 0) + 1
        if len(served.bodies) < _KEPT_BODIES:
            token = re.search(rb"(?i)(?:authorization: *bearer|x-api-key:|x-goog-api-key:) *([^\r\n]+)", head)
            served.tokens.append(token.group(1).decode() if token else "")
            served.bodies.append(body.decode())

    def _play(self, path: str, body: bytes) -> None:
        if self._served.steps:
            self._step(path, self._served.steps.pop(0))
        elif any(f'"{name}"'.encode() in body for name in self._served.plan.refused_formats):
            self._later(_reply(b'{"error":{"message":"response_format is not supported"}}', status=400))
        elif path in (EMBED_PATH, EMBEDDINGS_PATH):
            self._later(_reply(_embedded(path, body, self._served.plan.dimensions)))
        else:
            self._later(self._prepared(path, body))

    def _prepared(self, path: str, body: bytes) -> bytes:
        found = _FILE.search(body)
        place = int(found.group(1)) % DIFFERENT_ANSWERS if found else -1
        return self._served.answers[_written(path)][place]

    def _step(self, path: str, step: Step) -> None:
        written = _written(path)
        if step.hang:
            return
        if step.drop:
            self._close()
        elif step.cut:
            self._send(_reply(written(benchmark_answer(1)))[:-200])
            self._close()
        elif step.text is not None:
            self._later(_reply(written(step.text, step.finish_reason)))
        else:
            raw = (step.body or "").encode()
            self._later(_reply(raw, status=step.status, retry_after=step.retry_after))

    def _later(self, reply: bytes) -> None:
        if self._served.plan.latency:
            asyncio.get_running_loop().call_later(self._served.plan.latency, self._answer, reply)
        else:
            self._answer(reply)

    def _answer(self, reply: bytes) -> None:
        self._served.at_once -= 1
        self._send(reply)

    def _send(self, reply: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(reply)

    def _close(self) -> None:
        if self._transport is not None:
            self._transport.close()


def _embedded(path: str, body: bytes, dimensions: int) -> bytes:
    """Answer an embedding call; the place of the largest number of a vector comes from the text."""
    asked = json.loads(body)
    texts = asked["inputs"] if path == EMBED_PATH else asked["input"]
    vectors = []
    for text in texts:
        vector = [0.0] * dimensions
        vector[0] = 0.1
        vector[sum(text.encode()) % dimensions] += 1.0
        vectors.append(vector)
    if path == EMBED_PATH:
        return json.dumps(vectors).encode()
    data = [{"index": index, "embedding": vector} for index, vector in enumerate(vectors)]
    return json.dumps({"object": "list", "data": list(reversed(data))}).encode()


async def _serve(plan: Plan) -> None:
    numbered = [benchmark_answer(number) for number in range(DIFFERENT_ANSWERS)]
    texts = (*numbered, plan.otherwise)
    formats = (_chat, _generated, _message, _content)
    answers = {written: [_reply(written(text, "stop")) for text in texts] for written in formats}
    served = _Served(plan, list(plan.steps), answers)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Wire(served), "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    # The parent closes our input when it is done with us, or when it dies.
    await loop.run_in_executor(None, sys.stdin.read)


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    raw = json.loads(sys.stdin.readline())
    steps = tuple(Step(**step) for step in raw.pop("steps"))
    plan = Plan(**{**raw, "steps": steps, "refused_formats": tuple(raw["refused_formats"])})
    try:
        import uvloop  # noqa: PLC0415 - only this process may want it
    except ImportError:
        asyncio.run(_serve(plan))
    else:
        uvloop.run(_serve(plan))


if __name__ == "__main__":
    main()
