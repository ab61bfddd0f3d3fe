"""``python -m gridsched``, and what the command ``gridsched`` starts."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line; an interrupt while it is still loading ends it quietly, too."""
    # file names may hold bytes, and results letters, that the terminal cannot show
    sys.stdout.reconfigure(errors="backslashreplace")
    try:
        from gridsched.cli.app import main as run
    except KeyboardInterrupt:
        return 130
    return run()


if __name__ == "__main__":
    sys.exit(main())
