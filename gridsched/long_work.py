"""Work that takes long is reported: one line on what it is, once it has taken a while."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Work that is done sooner is not reported [s].
PATIENCE_S = 2.0
#: What is reported of linear programs.
SOLVING = "solving a linear program"
#: Called with the line; nothing is reported where there is none, as in a program that imports gridsched. The command
#: line has one, unless it is asked to be quiet.
reporters: list[Callable[[str], None]] = []


def report(text: str) -> None:
    """Report a line now."""
    for each in reporters:
        each(text)


class LongWork:
    """Work that may be done in pieces, which count together, and by several threads at once.

    Parameters
    ----------
    text : str
        What is done.
    patience_s : float, optional
        Time after which it is reported, once [s]; default `PATIENCE_S`.
    """

    def __init__(self, text: str, patience_s: float | None = None) -> None:
        self._text = text
        self._left_s = PATIENCE_S if patience_s is None else patience_s
        self._lock = threading.Lock()
        self._depth, self._begun_s = 0, 0.0
        self._timer: threading.Timer | None = None
        self.is_reported = False

    def begin(self) -> None:
        """Begin a piece of it."""
        with self._lock:
            self._depth += 1
            if self._depth > 1 or self.is_reported or not reporters:
                return
            if self._left_s > 0:
                self._begun_s = time.monotonic()
                self._timer = threading.Timer(self._left_s, self._report)
                self._timer.daemon = True
                self._timer.start()
                return
        self._report()

    def end(self) -> None:
        """End that piece; what it took counts for the next ones."""
        with self._lock:
            self._depth -= 1
            if self._depth or self._timer is None:
                return
            self._timer.cancel()
            self._timer = None
            self._left_s -= time.monotonic() - self._begun_s

    def _report(self) -> None:
        with self._lock:
            if self.is_reported or not self._depth:
                return
            self.is_reported = True
        report(self._text)


@contextmanager
def long_work(text: str, patience_s: float | None = None) -> Iterator[None]:
    """Report what is done here if it takes longer than a while; see `LongWork`.

    Examples
    --------
    >>> with long_work("computing the bounds of all schedules"):
    ...     pass
    """
    work = LongWork(text, patience_s)
    work.begin()
    try:
        yield
    finally:
        work.end()
