"""``gridsched kernels``: compile the loops of schedulers."""

from __future__ import annotations

import time

from gridsched.cli.options import command_group
from gridsched.cli.output import QuietOption, put, say

kernels_app = command_group()


@kernels_app.command("compile")
def compile_kernels(quiet: QuietOption = False) -> None:
    """Compile all loops of all schedulers, on all CPUs, unless they are compiled.

    They go into a library beside gridsched's modules, if there are numba and a C compiler, else into numba's cache.
    Without either, a command compiles a loop at its first use, and prints a line about it.

    Examples
    --------
    gridsched kernels compile
    """
    from gridsched.compiled import all_are_cached, has_numba, watchers
    from gridsched.loop_library import has_library
    from gridsched.schedulers.kernels import compile_all

    watchers.clear()  # that it compiles is no news here
    began = time.perf_counter()
    compile_all((lambda text: None) if quiet else say)
    if not quiet and (has_library() or (has_numba() and all_are_cached())):
        put(f"All kernels are compiled ({time.perf_counter() - began:.0f} s).")
