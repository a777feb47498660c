"""A model and an embedder that answer by what they read, and fail as the corpus says, in this process."""

import asyncio
import hashlib
import json
import random
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, Final

from tests.faults.corpus import Corpus, Fate
from tests.faults.phrases import memories_in

DIMENSIONS: Final = 8
_NUMBER: Final = re.compile(r"QX-(\d+)")
_LENGTH: Final = re.compile(rb"(?i)content-length: *(\d+)")
_CALLS_A_FAILED_ATTEMPT: Final = 2
# Some calls last as long as a group takes to give the work to somebody else.
_QUICK_S: Final = (0.02, 0.5)
_SLOW_S: Final = (1.0, 3.0)
_SHARE_OF_SLOW: Final = 0.15
_FAILURES: Final[Mapping[Fate, tuple[int, Mapping[str, str]]]] = {
    Fate.REFUSED: (HTTPStatus.BAD_REQUEST, {"error": "scripted"}),
    Fate.BUSY: (HTTPStatus.SERVICE_UNAVAILABLE, {"error": "scripted"}),
    Fate.HOPELESS: (HTTPStatus.OK, {"text": "I would rather talk about something else."}),
    Fate.UNREADABLE: (HTTPStatus.OK, {"text": '{"memories": [{"category": "wo'}),
}


class Model:
    """Speaks the formats ``generate`` and ``tei``. ``calls`` counts by session."""

    def __init__(self, corpus: Corpus | None) -> None:
        self.calls: dict[int, int] = {}
        self.url = ""
        sessions = corpus.sessions.values() if corpus is not None else ()
        self._fates = {one.number: one.fate for one in sessions}
        # The chain asks once more before an attempt fails.
        self._failures = {
            one.number: one.failures * (_CALLS_A_FAILED_ATTEMPT if one.fate is Fate.UNREADABLE else 1)
            for one in sessions
        }
        self._is_slow = corpus is not None

    @property
    def settings(self) -> Mapping[str, str]:
        """The settings of a service that asks this model."""
        return {
            "MEMORY_LLM_ENDPOINT": f"{self.url}/generate",
            "MEMORY_MODEL_FALLBACK": "wait",
            "AFTERWORD_EMBEDDER": "tei",
            "MEMORY_EMBED_URL": self.url,
            "EMBEDDING_MODEL": "scripted",
            "EMBEDDING_DIMENSIONS": str(DIMENSIONS),
        }

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = _LENGTH.search(head)
                body = await reader.readexactly(int(length.group(1)) if length else 0)
                is_embedding = b"/embed" in head.split(b"\r\n", 1)[0]
                status, answer = self._embedded(body) if is_embedding else await self._said(body)
                raw = json.dumps(answer).encode()
                writer.write(
                    f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n"
                    f"content-length: {len(raw)}\r\n\r\n".encode()
                    + raw
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            # Whoever asked was killed.
            pass
        finally:
            writer.close()

    async def _said(self, body: bytes) -> tuple[int, Any]:
        messages = _messages(json.loads(body)["prompt"])
        found = _NUMBER.search(" ".join(messages.values()))
        number = int(found.group(1)) if found else -1
        self.calls[number] = self.calls.get(number, 0) + 1
        fate = self._fates.get(number, Fate.GOOD)
        if fate in (Fate.REFUSED, Fate.HOPELESS) or self._fails(number):
            return _FAILURES[fate]
        if self._is_slow:
            # How long it takes decides nothing.
            slow = random.random() < _SHARE_OF_SLOW  # noqa: S311
            await asyncio.sleep(random.uniform(*(_SLOW_S if slow else _QUICK_S)))  # noqa: S311
        memories = list(memories_in(messages))
        answer = {"memories": memories, "nothing_to_extract": not memories, "extraction_notes": ""}
        return HTTPStatus.OK, {"text": json.dumps(answer)}

    def _fails(self, number: int) -> bool:
        left = self._failures.get(number, 0)
        self._failures[number] = left - 1
        return left > 0

    def _embedded(self, body: bytes) -> tuple[int, Any]:
        return HTTPStatus.OK, [_vector(text) for text in json.loads(body)["inputs"]]


@asynccontextmanager
async def model(corpus: Corpus | None = None) -> AsyncGenerator[Model]:
    """Run a model that fails as ``corpus`` says; without one it is quick and never fails."""
    serving = Model(corpus)
    server = await asyncio.start_server(serving.serve, "127.0.0.1", 0, limit=1 << 22)
    try:
        serving.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield serving
    finally:
        server.close()


def _messages(prompt: str) -> Mapping[str, str]:
    """Return the messages of a prompt that are not context; each is one JSON object a line."""
    _, _, conversation = prompt.rpartition("# Conversation")
    lines = [json.loads(line) for line in conversation.splitlines() if line.startswith('{"id"')]
    return {line["id"]: line["text"] for line in lines if not line.get("context")}


def _vector(text: str) -> list[float]:
    return [byte / 255 + 0.01 for byte in hashlib.sha256(text.encode()).digest()[:DIMENSIONS]]
