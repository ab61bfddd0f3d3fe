"""How unequally hosts were busy, as a metric."""

import numpy as np

from gridsched import Metric, register_metric


def busy_s(trace):
    runs, (execution, host) = trace.executions, trace.placed()
    return np.bincount(host, (runs["end"] - runs["start"])[execution], minlength=len(trace.platform))


def imbalance(facts):
    busy = busy_s(facts.trace)
    return float(busy.max() / busy.mean()) if busy.any() else 1.0


register_metric(Metric("imbalance", "", "longest busy time of a host over the mean", imbalance, better="less"))
