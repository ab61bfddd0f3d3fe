"""Workloads: generators and files."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gridsched.workloads.bag import BagOfTasks, generate_bag, read_bag, read_data_files, write_bag
    from gridsched.workloads.load import read_generator, read_system_workload, read_workload

#: Names and the modules they live in; imported when first used.
_HOME = {
    "bag": ("BagOfTasks", "generate_bag", "read_bag", "read_data_files", "write_bag"),
    "load": ("read_generator", "read_system_workload", "read_workload"),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "BagOfTasks",
    "generate_bag",
    "read_bag",
    "read_data_files",
    "read_generator",
    "read_system_workload",
    "read_workload",
    "write_bag",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'gridsched.workloads' has no attribute {name!r}")
    return getattr(import_module(f"gridsched.workloads.{_MODULE_OF[name]}"), name)
