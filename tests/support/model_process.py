"""The process of a model for tests and benchmarks: raw HTTP/1.1, as little work a call as can be.

It reads its plan as one line of JSON, writes its port, and ends with its standard input.
"""

import argparse
import asyncio
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, cast

from tests.support.benchmark_talks import DIFFERENT_ANSWERS, benchmark_answer
from tests.support.model_script import (
    EMBED_PATH,
    EMBEDDINGS_PATH,
    GEMINI_ENDING,
    GENERATE_PATH,
    MESSAGES_PATH,
    Plan,
    Step,
)

_FILE: Final = re.compile(rb"file QX-(\d{1,9})\b")
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
    server = await loop.create_server(lambda: _Wire(served), "127.0.0.1", plan.port)
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
