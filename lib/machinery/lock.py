"""A lock on a file that the system takes back when its holder dies, with the standard library alone."""
from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

WITHOUT_LOCKS = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS}  # some network disks know no locks: go on without


@contextmanager
def held(path: Path, waiting: Callable[[], None], pause: float = 0.3) -> Iterator[int]:
    """The descriptor of `path`, locked for the block; `waiting` is called once if another process holds it.

    A child that is given the descriptor (`pass_fds`) keeps the lock until it ends too, even if its parent is killed.
    """
    told = False
    while (descriptor := _take(path)) is None:
        if not told:
            waiting()
            told = True
        time.sleep(pause)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def attempt(path: Path) -> Iterator[bool]:
    """Whether the lock could be had at once; if so, it is held for the block."""
    descriptor = _take(path)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _take(path: Path) -> int | None:
    """An open, locked descriptor, or None while somebody else holds it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        _lock(descriptor)
        # the file may have been removed between open and lock: then this lock would guard nothing
        if os.path.samestat(os.fstat(descriptor), os.stat(path)):
            return descriptor
    except FileNotFoundError:
        pass
    except OSError as error:
        if error.errno in WITHOUT_LOCKS:
            return descriptor
        if error.errno not in (errno.EACCES, errno.EAGAIN, errno.EDEADLK):
            os.close(descriptor)
            raise
    os.close(descriptor)
    return None


if os.name == "nt":
    import msvcrt

    def _lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
