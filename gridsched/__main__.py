"""``python -m gridsched``, and what the command ``gridsched`` starts."""

from __future__ import annotations

import contextlib
import io
import os
import sys


def main() -> int:
    """Run the command line; an interrupt while it is still loading ends it quietly, too."""
    _open_closed_streams()
    # file names may hold bytes, and results letters, that the terminal cannot show
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        from gridsched.cli.app import main as run
    except KeyboardInterrupt:
        return 130
    return run()


def _open_closed_streams() -> None:
    """Let closed standard streams lead nowhere, so that no file of ours takes their place."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)  # takes the lowest free number: this one
            os.set_inheritable(opened, True)  # processes that we start have these streams, too
    for name, number in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            with contextlib.suppress(OSError):
                setattr(sys, name, os.fdopen(os.dup(number), "w", encoding="utf-8"))


if __name__ == "__main__":
    sys.exit(main())
