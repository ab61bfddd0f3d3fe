"""SimGrid's options in a platform file: those that others may set, and those that SimGrid 4.1 lacks.

Some options write files, whichever is named: traces, graphs. A platform file, a study and a
stored run may come from anybody, so they set `MODEL_OPTIONS` alone; the command line sets any.

SimGrid refuses a whole file for one option it does not know, and most files in the world are older
than 4.1. An option whose name has changed gets its new one; one on which nothing that gridsched
simulates depends is left out, traces of SimGrid's own among them: each run would write the same
file, and on some platforms SimGrid crashes by it. Whatever else SimGrid does not know it may
refuse.
"""

from __future__ import annotations

import re

#: Options of models and of the numbers that they compute with; none names a file.
MODEL_OPTIONS = (
    "bmf/max-iterations",
    "bmf/precision",
    "cpu/maxmin-selective-update",
    "cpu/model",
    "cpu/optim",
    "cpu/solver",
    "disk/model",
    "disk/solver",
    "host/model",
    "host/solver",
    "maxmin/concurrency-limit",
    "maxmin/precision",
    "network/TCP-gamma",
    "network/bandwidth-factor",
    "network/crosstraffic",
    "network/latency-factor",
    "network/loopback-bw",
    "network/loopback-lat",
    "network/maxmin-selective-update",
    "network/model",
    "network/optim",
    "network/solver",
    "network/weight-S",
    "precision/bmf",
    "precision/timing",
    "precision/work-amount",
    "smpi/IB-penalty-factors",
    "smpi/buffering",
    "smpi/bw-factor",
    "smpi/lat-factor",
    "surf/precision",
)
#: Options by their names in SimGrid 3, and in 4.1.
_RENAMED = {
    "cpu/maxmin_selective_update": "cpu/maxmin-selective-update",
    "maxmin/concurrency_limit": "maxmin/concurrency-limit",
    "network/TCP_gamma": "network/TCP-gamma",
    "network/bandwidth_factor": "network/bandwidth-factor",
    "network/latency_factor": "network/latency-factor",
    "network/maxmin_selective_update": "network/maxmin-selective-update",
    "network/weight_S": "network/weight-S",
    "smpi/IB_penalty_factors": "smpi/IB-penalty-factors",
    "smpi/bw_factor": "smpi/bw-factor",
    "smpi/lat_factor": "smpi/lat-factor",
    "workstation/model": "host/model",
}
#: What the network's models take of the options for MPI programs; the others concern those alone.
_OF_THE_NETWORK = ("IB-penalty-factors", "buffering", "bw-factor", "lat-factor")
#: Names without effect here: coordinates are always read, the rest are for the stacks of actors in
#: C++, for MPI programs, for traces and visualization, and for a simulator of networks that has
#: gone.
_WITHOUT_EFFECT = re.compile(
    r"network/(coordinates|sender_gap)|contexts/.*|tracing(/.*)?|(tri)?viva/.*|gtnets/.*"
    rf"|smpi/(?!({'|'.join(_OF_THE_NETWORK)})$).*"
)
#: Values without effect: the model of hosts that is now the default one, and a way of counting
#: loads with which SimGrid 4.1 crashes where hosts are metered; its results are the same.
_VALUES_WITHOUT_EFFECT = {("host/model", "compound"), ("cpu/optim", "TI")}


def check_option(option: str, value: str) -> None:
    """Raise `ValueError` unless anybody may set an option to a value.

    Parameters
    ----------
    option : str
    value : str
        SimGrid takes what follows a blank or comma for another option.
    """
    if option not in MODEL_OPTIONS:
        raise ValueError(
            f"{option!r} can only be set by --cfg on the command line, because some of SimGrid's options "
            f"write files; allowed: {', '.join(MODEL_OPTIONS)}; take it out"
        )
    if not re.fullmatch(r"[^\s,]+", value):
        raise ValueError(f"{option!r} is {value!r}; one value without blanks and commas is allowed")


def new_name(option: str, value: str) -> str | None:
    """Return how SimGrid 4.1 calls an option of a ``<config>``; None where it is to be left out."""
    option = _RENAMED.get(option, option)
    has_effect = (option, value) not in _VALUES_WITHOUT_EFFECT and not _WITHOUT_EFFECT.fullmatch(option)
    return option if has_effect else None
