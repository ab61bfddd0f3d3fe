"""``python -m gridsched.schedulers.kernels`` compiles all kernels, on all CPUs, into numba's cache.

Processes that start together where nothing is compiled would each compile the same.
"""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor

from gridsched.schedulers.kernels import compile_group, groups


def main() -> None:
    """Compile one group of kernels in each process."""
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(compile_group, groups()))


if __name__ == "__main__":
    main()
