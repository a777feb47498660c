"""Wait for something, unless a stop comes first."""

import asyncio
from collections.abc import Coroutine
from typing import Any


async def unless(stopping: asyncio.Event, call: Coroutine[Any, Any, object]) -> bool:
    """Await ``call`` unless ``stopping`` is set first, which cancels it; say whether it ended.

    What ``call`` raises is raised.
    """
    working = asyncio.ensure_future(call)
    waiting = asyncio.ensure_future(stopping.wait())
    try:
        await asyncio.wait((working, waiting), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            return False
        working.result()
        return True
    finally:
        for future in (working, waiting):
            future.cancel()
        await asyncio.gather(working, waiting, return_exceptions=True)
