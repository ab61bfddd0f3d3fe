"""What of Slurm's configuration would change a schedule, and is not simulated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from gridsched.errors import counted

#: Values by which a key has no effect.
_NOTHING = ("", "none", "off", "no", "false", "0", "-1", "(null)", "n/a", "infinite", "unlimited")
#: Keys of the whole machine, and further values by which they have no effect.
_OF_MACHINE: Mapping[str, tuple[str, ...]] = {
    "topologyplugin": ("topology/none", "topology/default", "topology/flat"),
    "preempttype": ("preempt/none",),
    "preemptmode": (),
    "licenses": (),
    "burstbuffertype": ("burst_buffer/none",),
    "suspendtime": (),
}
#: The same where priorities have several factors.
_OF_PRIORITIES: Mapping[str, tuple[str, ...]] = {
    "priorityweighttres": (),
    "priorityweightassoc": (),
    "priorityusageresetperiod": (),
    "prioritysitefactorplugin": ("site_factor/none",),
}
#: Times and rates of hosts that are switched off when idle, which have an effect with SuspendTime.
_OF_SUSPENSION = ("suspendtimeout", "resumetimeout", "suspendrate", "resumerate")
#: Values of AccountingStorageEnforce by which jobs wait for limits, and flags of how nodes are chosen.
_LIMITS, _CHOICES = ("limits", "qos", "safe", "all"), ("cr_lln", "cr_pack_nodes")
#: Keys of partitions, and of nodes.
OF_PARTITIONS = ("preemptmode", "qos", "lln", "exclusiveuser", "exclusivetopo", "maxcpuspernode", "maxcpuspersocket",
                 "suspendtime", "powerdownonidle")  # fmt: skip
OF_NODES = ("corespeccount", "cpuspeclist", "memspeclimit")
#: Keys of partitions of which one value alone has an effect here: jobs that share cores in time.
_FORCED = ("oversubscribe", "shared")


def is_set(value: str, *others: str) -> bool:
    """Whether a key has an effect by its value; `others` are further values by which it has none."""
    return value.strip().lower() not in (*_NOTHING, *others)


def effects_of_machine(settings: Mapping[str, str]) -> Iterator[str]:
    """Yield the settings that would change a schedule, as the file writes them.

    Parameters
    ----------
    settings : mapping of str to str
        All keys and values of the file that are of the whole machine.
    """
    known = {name.lower(): (name, value) for name, value in settings.items()}

    def value_of(key: str) -> str:
        return known.get(key, ("", ""))[1]

    keys = dict(_OF_MACHINE)
    if value_of("prioritytype").lower() == "priority/multifactor":
        keys |= _OF_PRIORITIES
    if is_set(value_of("suspendtime")):
        keys |= dict.fromkeys(_OF_SUSPENSION, ())
    for key, others in keys.items():
        if key in known and is_set(value_of(key), *others):
            yield f"{known[key][0]}={value_of(key)[:40]}"
    for key, words in (("accountingstorageenforce", _LIMITS), ("selecttypeparameters", _CHOICES)):
        found = [each for each in value_of(key).split(",") if each.strip().lower() in words]
        if found:
            yield f"{known[key][0]}={','.join(found)}"


def effects_of_parts(values: Mapping[str, str], keys: Iterable[str]) -> list[str]:
    """Return the keys of a node or partition that would change a schedule."""
    found = [key for key in keys if is_set(values.get(key, ""))]
    return found + [key for key in _FORCED if values.get(key, "").upper().startswith("FORCE")]


def shown_parts(owners: Mapping[str, list[str]], what: str) -> Iterator[str]:
    """Yield keys with the partitions, or nodes, that have them."""
    for key, names in owners.items():
        yield f"{key} of {counted(len(names), what)} ({', '.join(names[:3])}{', ...' * (len(names) > 3)})"
