"""``gridsched kernels``: compile the loops of schedulers."""

from __future__ import annotations

import time

from gridsched.cli.options import command_group
from gridsched.cli.output import QuietOption

kernels_app = command_group()


@kernels_app.command("compile")
def compile_kernels(quiet: QuietOption = False) -> None:
    """Compile all loops of all schedulers, on all CPUs, except those compiled already.

    Without it, a command compiles a loop at its first use, and prints a line about it.

    Examples
    --------
    gridsched kernels compile
    """
    from gridsched.compiled import all_are_cached, watchers
    from gridsched.schedulers.kernels import compile_all

    watchers.clear()  # that it compiles is no news here
    began = time.perf_counter()
    compile_all()
    if not quiet and all_are_cached():
        print(f"All kernels are compiled ({time.perf_counter() - began:.0f} s).")
