"""Workloads: generators (one module for each paper) and files."""

from gridsched.workloads.bag import BagOfTasks, generate_bag, read_bag, read_data_files, write_bag
from gridsched.workloads.load import read_generator, read_system_workload, read_workload
from gridsched.workloads.parallel_day import ParallelDay
from gridsched.workloads.parallel_tasks import generate_parallel_day
from gridsched.workloads.utility_day import UtilityDay, generate_utility_day

__all__ = [
    "BagOfTasks",
    "ParallelDay",
    "UtilityDay",
    "generate_bag",
    "generate_parallel_day",
    "generate_utility_day",
    "read_bag",
    "read_data_files",
    "read_generator",
    "read_system_workload",
    "read_workload",
    "write_bag",
]
