"""A program that holds an embedded stack until a signal comes.

``embedded_holder.py FOLDER`` or ``embedded_holder.py --temporary``; it prints one line of JSON when ready.
"""

import asyncio
import json
import signal
import sys
from contextlib import nullcontext
from pathlib import Path

import psutil

from service.embedded.folders import temporary_folder
from service.embedded.stack import EmbeddedStack


async def hold(folder: Path) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    async with EmbeddedStack(folder, postgres=True, broker=True) as stack:
        children = [child.pid for child in psutil.Process().children(recursive=True)]
        state = {
            "database_url": stack.database_url,
            "bootstrap": stack.bootstrap,
            "children": children,
            "folder": str(folder),
        }
        sys.stdout.write(json.dumps(state) + "\n")
        sys.stdout.flush()
        await ended.wait()


def main() -> None:
    chosen = temporary_folder() if sys.argv[1] == "--temporary" else nullcontext(Path(sys.argv[1]))
    with chosen as folder:
        asyncio.run(hold(folder))


if __name__ == "__main__":
    main()
