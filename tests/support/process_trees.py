"""Stop a process with all that descends from it, and let it go on."""

from contextlib import suppress

import psutil


def suspend_tree(pid: int) -> None:
    """SIGSTOP the process ``pid``, then what descends from it: a stopped one starts no other."""
    main = psutil.Process(pid)
    main.suspend()
    for process in main.children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            process.suspend()


def resume_tree(pid: int) -> None:
    """SIGCONT what descends from the process ``pid``, and it."""
    main = psutil.Process(pid)
    for process in main.children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            process.resume()
    main.resume()
