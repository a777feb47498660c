"""Become another program that does not outlive its holder.

Run as a script, by path: ``exec_child.py SIGNAL UID GID HOLDER PIPE PROGRAM [ARGUMENT...]``. It drops to
``UID`` unless that is -1, binds its life to the process ``HOLDER`` and replaces itself by ``PROGRAM``.
Linux sends ``SIGNAL`` by itself when the holder dies; elsewhere ``PIPE`` is the number of an inherited
descriptor whose other end the holder alone keeps, and a watcher waits for it to close.
"""

import ctypes
import os
import select
import signal
import sys

PR_SET_PDEATHSIG = 1
LOOK_S = 1.0
GRACE_S = 10.0


def drop_privileges(uid: int, gid: int) -> None:
    """Give up root for good."""
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)


def die_with_holder(death_signal: int) -> None:
    """Ask Linux to send ``death_signal`` to this process when its parent dies."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, death_signal, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def watch(pipe: int, death_signal: int) -> None:
    """Fork a watcher that signals this process when the other end of ``pipe`` closes."""
    watched = os.getpid()
    if os.fork() != 0:
        os.close(pipe)
        return
    os.setsid()
    while os.getppid() == watched:
        readable, _, _ = select.select([pipe], [], [], LOOK_S)
        if readable:
            os.kill(watched, death_signal)
            select.select([], [], [], GRACE_S)
            if os.getppid() == watched:
                os.kill(watched, signal.SIGKILL)
            break
    os._exit(0)


def main(arguments: list[str]) -> None:
    """Bind this process to its holder and become the program."""
    death_signal, uid, gid, holder, pipe = (int(number) for number in arguments[:5])
    program = arguments[5:]
    if uid >= 0:
        drop_privileges(uid, gid)
    if pipe >= 0:
        watch(pipe, death_signal)
    else:
        # After the change of user, which clears it.
        die_with_holder(death_signal)
    if os.getppid() != holder:
        raise SystemExit("the holder is gone")
    os.execv(program[0], program)  # noqa: S606


if __name__ == "__main__":
    main(sys.argv[1:])
