"""Length-prefixed messages between the asking process, the server and its children."""

from __future__ import annotations

import os
import struct

_LENGTH = struct.Struct("<Q")


def send(descriptor: int, message: bytes) -> None:
    """Write one message to a file descriptor."""
    view = memoryview(_LENGTH.pack(len(message)) + message)
    while view:
        view = view[os.write(descriptor, view) :]


def receive(descriptor: int) -> bytes | None:
    """Read one message; None if the other side has closed before or within it."""
    header = _read(descriptor, _LENGTH.size)
    return None if header is None else _read(descriptor, _LENGTH.unpack(header)[0])


def _read(descriptor: int, size: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < size:
        part = os.read(descriptor, min(size - len(parts), 1 << 20))
        if not part:
            return None
        parts += part
    return bytes(parts)
