"""What another process says, however much that is: its begin and its end are kept."""

from __future__ import annotations

#: So much of the begin and of the end is kept [byte].
_HEAD, _TAIL = 1 << 16, 1 << 20


class ProcessLog:
    """The begin and the end of what a process says."""

    def __init__(self) -> None:
        self._head, self._tail = bytearray(), bytearray()

    def add(self, part: bytes) -> None:
        """Take what comes next."""
        room = _HEAD - len(self._head)
        self._head += part[:room]
        self._tail = (self._tail + part[max(0, room) :])[-_TAIL:]

    @property
    def text(self) -> str:
        """What is kept."""
        return (self._head + self._tail).decode(errors="replace")
