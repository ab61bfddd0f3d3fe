"""Length-prefixed messages between the asking process, the server and its children."""

from __future__ import annotations

import os
import select
import struct
import time

_MARK = b"\x93gs\n"
_HEADER = struct.Struct("<4sQ")
#: `select.poll` waits no longer at once than 2**31 ms, 25 days: a day.
_LONGEST_POLL_MS = 86_400e3


class Garbled(Exception):
    """What has come is no message: somebody else has written between them."""


def send(descriptor: int, message: bytes) -> None:
    """Write one message to a file descriptor."""
    write(descriptor, _HEADER.pack(_MARK, len(message)) + message)


def write(descriptor: int, data: bytes) -> None:
    """Write all of some data to a file descriptor."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def readable(poll: select.poll, deadline: float | None) -> set[int]:
    """Wait for what can be read; return nothing once the deadline has passed (`time.monotonic`)."""
    while True:
        rest_ms = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1e3
        wait_ms = None if rest_ms is None else min(rest_ms, _LONGEST_POLL_MS)
        ready = {source for source, _ in poll.poll(wait_ms)}
        if ready or rest_ms == 0.0:
            return ready


def receive(
    descriptor: int, deadline: float | None = None, ended: int | None = None
) -> bytes | None:
    """Read one message; None if the other side has closed before or within it.

    Parameters
    ----------
    descriptor : int
    deadline : float, optional
        Clock (`time.monotonic`) until which the whole message must have come [s].
    ended : int, optional
        Can be read once the other side has ended: others may hold the pipe open.

    Raises
    ------
    TimeoutError
        If it has not come until then.
    Garbled
        If no message begins here.
    """
    poll = select.poll()
    for source in {descriptor, descriptor if ended is None else ended}:
        poll.register(source, select.POLLIN)

    def read(size: int) -> bytes | None:
        parts = bytearray()
        while len(parts) < size:
            ready = readable(poll, deadline)
            if not ready:
                raise TimeoutError
            part = b""
            if descriptor in ready:
                part = os.read(descriptor, min(size - len(parts), 1 << 20))
            if not part:
                return None
            parts += part
        return bytes(parts)

    header = read(_HEADER.size)
    if header is None:
        return None
    mark, size = _HEADER.unpack(header)
    if mark != _MARK:
        raise Garbled
    return read(size)
