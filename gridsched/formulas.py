"""Formulas of energy and speed-up, each with its source, as plain functions."""

from gridsched.energy import host_energy_004, task_energy, total_energy
from gridsched.power import host_power
from gridsched.workloads.speedup import downey_speedup, downey_time

__all__ = ["downey_speedup", "downey_time", "host_energy_004", "host_power", "task_energy", "total_energy"]
