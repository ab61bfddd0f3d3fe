"""Schedulers for bags of independent serial tasks (algorithms A1-A6 and the usual baselines)."""
