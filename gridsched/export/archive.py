"""The archive of a run: one npz file that holds its trace, and from which it is read back.

Arrays are in the file as they are, with every digit; what is not an array (the platform, names,
provenance) is beside them as one JSON text. ``numpy.load`` opens the file without us.
"""

from __future__ import annotations

import ast
import io
import json
import re
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from gridsched.errors import InputError
from gridsched.files.input_files import read_bytes
from gridsched.files.json_files import json_text
from gridsched.files.output_files import as_bytes
from gridsched.model.attributes import Attribute
from gridsched.model.data_files import DataFiles
from gridsched.model.dependencies import Block, Dependencies
from gridsched.model.holds import Holds
from gridsched.model.limits import LARGEST_RESULT, Positive
from gridsched.model.platform import Platform
from gridsched.model.records import gravest, key_name, problem_of
from gridsched.model.rules import EnergyBudget
from gridsched.model.signals import EVEN, Signal, as_written_today
from gridsched.model.staged_files import StagedFiles
from gridsched.model.tariff import Tariff
from gridsched.model.tasks import OF_PARTS, Tasks, is_constant, make_tasks
from gridsched.model.trace import EXECUTION, HOST_CHANGE, PERIOD, STEP, TRANSFER, Trace, check_trace
from gridsched.model.utility import UtilityClasses, UtilityFunctions

T = TypeVar("T")
FORMAT_VERSION = 2
#: Larger archives are refused.
MAX_BYTES = 4 << 30
#: So are those that unpack to more than so many bytes, and to more than so many times their size;
#: runs of equal tasks on equal hosts reach 50 times.
_MOST_UNPACKED, _MOST_TIMES = 256 << 20, 100
#: And those whose description has more values: each takes many times its text in memory.
_MOST_VALUES = 20_000_000

_TASKS = ("flops", "submit_time_s", "input_bytes", "output_bytes", "labels")
#: Columns that not all tasks have.
_SOME_TASKS = ("task_type", "deadline_s", "width", "requested_time_s", "demand", "anywhere", "partition")
#: The one array of two dimensions.
_TABLE = "tasks.demand.npy"
#: Records of utility functions, of their classes and of the trace, and their types.
_FUNCTIONS = {"priority": np.float64, "urgency": np.float64, "utility_class": np.int64}
_CLASSES = {
    "first": np.int64,
    **dict.fromkeys(("start_time", "start_fraction", "end_fraction", "urgency_modifier"), np.float64),
    "kind": np.int64,
}
_RECORDS = {
    "executions": EXECUTION,
    "host_changes": HOST_CHANGE,
    "periods": PERIOD,
    "final_state": np.int64,
    "times_postponed": np.int64,
}
#: What tasks wait for, by its columns; only where they do.
_PAIRS = {
    **dict.fromkeys(("task", "on", "kind", "item"), np.int64),
    **dict.fromkeys(("delay_s", "size_bytes"), np.float64),
}
#: Files that no task makes, and who reads them; their host is in the description.
_BLOCKS = {**dict.fromkeys(("task", "on", "tasks", "others", "kind"), np.int64), "delay_s": np.float64}
_HOLDS = {"release_s": np.float64, "array": np.int64, "limit": np.int64}
_STAGED = {"task": np.int64, "file": np.int64, "size_bytes": np.float64}
#: Keys of the description about the export, the trace and the tasks, named as there.
_OF_EXPORT = ("workload_name", "provenance", "plugin_j")
_OF_TRACE = ("horizon_s", "mapping_events", "delegated_to", "timing", "as_estimated", "energy_weights", "carbon")
_OF_TASKS = ("nominal_heterogeneity", "input_files", "resources")
#: What an archive counts at most.
_MOST = 2**53
#: Types of numbers and texts. What NumPy makes of other words can end the process.
_TYPE = re.compile(r"[<>|=]?[?bBiufSUV]\d{0,9}")
#: What reading a damaged archive raises.
_DAMAGE = (EOFError, LookupError, OverflowError, RuntimeError, TypeError, ValueError, zipfile.BadZipFile, zlib.error)
#: Longer headers of arrays could exhaust Python's parser.
_LONGEST_HEADER = 10_000


@dataclass(frozen=True)
class _Files:
    names: tuple[str, ...]
    size_bytes: tuple[float, ...]
    locations: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class _Description:
    """What an archive holds beside its arrays; what is not there has come with a later version."""

    workload_name: str
    provenance: dict[str, Any]
    plugin_j: dict[str, float] | None
    platform: Platform
    horizon_s: float
    mapping_events: Annotated[int, Field(ge=0, le=_MOST)]
    delegated_to: str
    timing: dict[str, float]
    tasks_name: str
    nominal_heterogeneity: Annotated[float, Field(ge=0, le=1)] | None
    input_files: tuple[tuple[Annotated[int, Field(ge=0)], ...], ...] | None
    files: _Files | None
    as_estimated: bool = True
    energy_weights: Annotated[Signal, BeforeValidator(as_written_today)] = EVEN
    urgency_unit_s: Positive | None = None
    carbon: Signal | None = None
    attributes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    resources: tuple[str, ...] = ()
    link_bytes: dict[str, Annotated[float, Field(ge=0, le=LARGEST_RESULT)]] = field(default_factory=dict)
    sent_bytes: tuple[Annotated[float, Field(ge=0, le=LARGEST_RESULT)], ...] = ()
    traffic_step_s: Annotated[float, Field(ge=0, le=LARGEST_RESULT)] = 0.0
    staged_on: str = ""


#: The columns of `Trace.computed`.
_COMPUTED = ("computing_s", "full_speed_s")
#: `Trace.traffic_bytes`, link after link.
_TRAFFIC = "traffic_bytes"
#: What metrics of workflows are measured by; only in their archives.
_BESIDE = ("shortest_s", "host_times_s")
#: Records of parallel tasks; the last where they share nodes.
_NODE_SETS = ("host_offsets", "host_ids", "host_cores")
#: What only platforms have whose nodes jobs share; archives of others are as they were before.
_OF_SHARED_NODES = ("partitions", "resources")
#: What the names of noted columns begin with.
_NOTES = "notes."
#: ... and those of attributes of jobs.
_ATTRIBUTES = "attributes."
#: All arrays that a run may have, but for those by such names.
_NAMES = {
    "description",
    "load",
    *_COMPUTED,
    _TRAFFIC,
    "transfers",
    "steps",
    *_BESIDE,
    *_RECORDS,
    *_NODE_SETS,
    *(f"tasks.{name}" for name in (*_TASKS, *_SOME_TASKS)),
    *(f"utility.{name}" for name in _FUNCTIONS),
    *(f"classes.{name}" for name in _CLASSES),
    *(f"dependencies.{name}" for name in _PAIRS),
    *(f"staged.{name}" for name in _STAGED),
    *(f"holds.{name}" for name in _HOLDS),
    *(f"blocks.{name}" for name in _BLOCKS),
}


@dataclass(frozen=True)
class Export:
    """A run read back from its folder.

    Attributes
    ----------
    trace : Trace
    plugin_j : dict of str to float, or None
        Energy SimGrid's plugin metered, by host name [J]; None if no host was metered.
    provenance : dict
    workload_name : str
    """

    trace: Trace
    plugin_j: dict[str, float] | None
    provenance: dict[str, Any]
    workload_name: str

    @property
    def tariff(self) -> Tariff | None:
        """What bags pay and joules cost, None where the run had no price and no budget in money.

        Raises
        ------
        InputError
            If the provenance holds no allowed one.
        """
        tariff = self._recorded("tariff", Tariff)
        return tariff or Tariff.of_budget(self._recorded("budget", EnergyBudget))

    def _recorded(self, name: str, kind: type[T]) -> T | None:
        """Return the record's part of the provenance, if there is one."""
        record = self.provenance.get(name)
        return None if record is None else _validated(kind, record, "provenance: ", name)


def _validated(kind: type[T], record: Any, owner: str = "", *path: str) -> T:
    try:
        return TypeAdapter(kind).validate_python(record)
    except ValidationError as error:
        first = gravest(error)
        where = key_name((*path, *first["loc"]))
        raise InputError(f"{owner}{where} {problem_of(first)}") from None


def as_json(platform: Platform) -> dict[str, Any]:
    """Return a platform as JSON's types; infinities stay."""
    whole: dict[str, Any] = to_jsonable_python(platform, inf_nan_mode="constants")
    for record in (whole, *whole["hosts"], *whole["bystanders"], whole["master"] or {}):
        for name in _OF_SHARED_NODES:
            if not record.get(name, True):
                del record[name]
    return whole


def archive_bytes(export: Export) -> bytes:
    """Return the content of the archive; the same for the same run."""
    trace, tasks, utility = export.trace, export.trace.tasks, export.trace.tasks.utility
    arrays = {name: getattr(trace, name) for name in _RECORDS}
    if trace.is_parallel:
        arrays |= {name: getattr(trace, name) for name in (_NODE_SETS if len(trace.host_cores) else _NODE_SETS[:2])}
    columns = {name: getattr(tasks, name) for name in (*_TASKS, *_SOME_TASKS)}
    made_anew = [name for name in OF_PARTS if is_constant(columns[name])]  # by who reads it
    arrays |= {
        f"tasks.{name}": values for name, values in columns.items() if values is not None and name not in made_anew
    }
    arrays |= {
        name: getattr(trace, name) for name in ("load", "transfers", "steps", *_BESIDE) if len(getattr(trace, name))
    }
    if len(trace.computed):
        arrays |= dict(zip(_COMPUTED, np.ascontiguousarray(trace.computed.T), strict=True))
    if tasks.dependencies is not None:
        pairs = tasks.dependencies.by_task()
        arrays |= {f"dependencies.{name}": getattr(pairs, name) for name in _PAIRS}
        arrays |= _block_arrays(pairs.blocks)
    arrays |= {f"{_NOTES}{name}": values for name, values in trace.notes.items()}
    arrays |= {f"{_ATTRIBUTES}{name}": each.codes for name, each in tasks.attributes.items()}
    if utility is not None:
        arrays |= {f"utility.{name}": getattr(utility, name) for name in _FUNCTIONS}
        arrays |= {f"classes.{name}": getattr(utility.classes, name) for name in _CLASSES}
    if tasks.holds is not None:
        arrays |= {f"holds.{name}": getattr(tasks.holds, name) for name in _HOLDS}
    if tasks.staged is not None:
        arrays |= {f"staged.{name}": getattr(tasks.staged, name) for name in _STAGED}
    description = {
        "format_version": FORMAT_VERSION,
        **{name: getattr(export, name) for name in _OF_EXPORT},
        "platform": as_json(trace.platform),
        **{name: getattr(trace, name) for name in _OF_TRACE},
        "tasks_name": tasks.name,
        **{name: getattr(tasks, name) for name in _OF_TASKS},
        "files": tasks.files and vars(tasks.files),
        "energy_weights": asdict(trace.energy_weights),
        "urgency_unit_s": utility and utility.urgency_unit_s,
        "carbon": trace.carbon and asdict(trace.carbon),
        "attributes": {name: each.names for name, each in tasks.attributes.items()},
    }
    if tasks.staged is not None:
        description["staged_on"] = tasks.staged.host
    if not tasks.share_nodes:
        del description["resources"]
    if trace.link_bytes:
        description["link_bytes"] = trace.link_bytes
        description["sent_bytes"] = trace.sent_bytes
    if trace.traffic_bytes.size:
        description["traffic_step_s"] = trace.traffic_step_s
        arrays[_TRAFFIC] = trace.traffic_bytes.ravel()
    stream = io.BytesIO()
    text = as_bytes(json_text(description, exact=True))
    np.savez_compressed(stream, description=np.frombuffer(text, np.uint8), **arrays)
    return stream.getvalue()


def read_archive(path: Path) -> Export:
    """Read a run back.

    Raises
    ------
    InputError
        If the file is missing, damaged, unpacks to far too much, or holds what no run can have.
    """
    content = read_bytes(path, MAX_BYTES)
    try:
        arrays = _arrays(content)
        text = arrays.pop("description").tobytes()
        if sum(map(text.count, (b",", b"[", b"{"))) > _MOST_VALUES:
            raise InputError(f"its description has more than {_MOST_VALUES:,} values.")
        description = json.loads(text)
        if description["format_version"] != FORMAT_VERSION:
            raise InputError(
                f"is of version {description['format_version']!r}; this gridsched reads version {FORMAT_VERSION}."
            )
        return _export(_validated(_Description, description), arrays)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except _DAMAGE as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise InputError(
            f"{path}: is not a whole archive of a run ({reason}); make it again with 'gridsched run ... --export DIR'."
        ) from None


def _arrays(content: bytes) -> dict[str, NDArray[Any]]:
    """Return the arrays of an archive that a run has, by name; nothing else is unpacked."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {each.filename.removesuffix(".npy"): each for each in archive.infolist()}
        legal = {
            name: each for name, each in members.items() if name in _NAMES or name.startswith((_NOTES, _ATTRIBUTES))
        }
        unpacked = sum(each.file_size for each in legal.values())
        if unpacked > max(_MOST_UNPACKED, _MOST_TIMES * len(content)):
            raise InputError(
                f"unpacks to {unpacked / 2**20:,.0f} MB, {unpacked / len(content):,.0f} times its "
                f"size; at most {_MOST_UNPACKED >> 20} MB or {_MOST_TIMES} times are read."
            )
        return {name: _array(archive, each) for name, each in legal.items()}


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    """Return an array as `np.load` would, but of no more bytes than are there."""
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{member.filename} is compressed in another way")
    with archive.open(member) as packed:
        stream = io.BytesIO(packed.read(member.file_size))
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError(f"{member.filename} is not an array of NumPy's format 1.0")
    header = _header(stream.read(int.from_bytes(stream.read(2), "little")))
    dtype = np.lib.format.descr_to_dtype(header["descr"])
    values = np.frombuffer(bytearray(stream.read()), dtype)
    shape = header["shape"]
    if member.filename == _TABLE and len(shape) == 2 and not header["fortran_order"]:
        values = values.reshape(len(values) // max(shape[1], 1), -1) if shape[1] > 0 else values
    if values.shape != shape:
        raise ValueError(f"{member.filename} does not have the shape {values.shape} of its content")
    return values


def _header(text: bytes) -> dict[str, Any]:
    """Return the header of an array, of plain types; `ValueError` if it is none."""
    if len(text) > _LONGEST_HEADER:
        raise ValueError(f"an array has a header of {len(text)} bytes")
    try:
        header: dict[str, Any] = ast.literal_eval(text.decode("latin1"))
    except (SyntaxError, MemoryError) as error:
        raise ValueError(f"header of an array: {error}") from None
    descr = header["descr"]
    types = [descr] if isinstance(descr, str) else [column[1] for column in descr]
    if not all(map(_TYPE.fullmatch, types)):
        raise ValueError("an array has a type that is neither number nor text")
    return header


def _export(description: _Description, arrays: dict[str, NDArray[Any]]) -> Export:
    platform = description.platform
    _check_platform(platform)
    records: dict[str, Any] = _cast(arrays, "", _RECORDS)
    records |= _cast(arrays, "", {name: np.int64 for name in _NODE_SETS if name in arrays})
    records |= {name: getattr(description, name) for name in _OF_TRACE}
    notes = {name.removeprefix(_NOTES): np.float64 for name in arrays if name.startswith(_NOTES)}
    records["load"] = arrays.get("load", np.zeros(0)).astype(np.float64)
    records["transfers"] = arrays.get("transfers", np.zeros(0, TRANSFER)).astype(TRANSFER)
    records["steps"] = arrays.get("steps", np.zeros(0, STEP)).astype(STEP)
    records |= _cast(arrays, "", {name: np.float64 for name in _BESIDE if name in arrays})
    records["computed"] = np.zeros((0, 2))
    if _COMPUTED[0] in arrays:
        records["computed"] = np.stack(list(_cast(arrays, "", dict.fromkeys(_COMPUTED, np.float64)).values()), axis=1)
    if _TRAFFIC in arrays:
        sent, n_links = arrays[_TRAFFIC].astype(np.float64), len(description.link_bytes)
        if not n_links or len(sent) % n_links:
            raise InputError(f"{_TRAFFIC}: {len(sent)} numbers are no rows of {n_links} links.")
        records[_TRAFFIC] = sent.reshape(n_links, -1)
    trace = Trace(
        platform,
        _tasks(description, arrays),
        **records,
        notes=_cast(arrays, _NOTES, notes),
        link_bytes=description.link_bytes,
        sent_bytes=description.sent_bytes,
        traffic_step_s=description.traffic_step_s,
    )
    check_trace(trace)
    hosts = {host.name for host in platform.everyone}
    strangers = set(description.plugin_j or ()) - hosts
    if strangers:
        raise InputError(f"plugin_j names hosts that the platform has not: {strangers}")
    return Export(trace, **{name: getattr(description, name) for name in _OF_EXPORT})


def _cast(arrays: dict[str, NDArray[Any]], prefix: str, types: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Return the arrays of such names behind a prefix, of these types."""
    return {name: arrays[f"{prefix}{name}"].astype(dtype) for name, dtype in types.items()}


def _tasks(description: _Description, arrays: dict[str, NDArray[Any]]) -> Tasks:
    utility = None
    if "utility.priority" in arrays:
        functions = _cast(arrays, "utility.", _FUNCTIONS)
        unit_s = description.urgency_unit_s or 1.0
        utility = UtilityFunctions(**functions, classes=_classes(arrays), urgency_unit_s=unit_s)
    files = description.files
    columns: dict[str, Any] = {name: arrays[f"tasks.{name}"] for name in _TASKS}
    if (np.diff(columns["submit_time_s"]) < 0).any():
        raise InputError("tasks.submit_time_s must never decrease.")
    columns |= {name: arrays.get(f"tasks.{name}") for name in _SOME_TASKS}
    columns |= {name: getattr(description, name) for name in _OF_TASKS}
    return make_tasks(
        **columns,
        attributes={
            name: Attribute(names, arrays[f"{_ATTRIBUTES}{name}"].astype(np.int64), names).texts
            for name, names in description.attributes.items()
        },
        utility=utility,
        dependencies=_dependencies(arrays, len(columns["flops"])),
        holds=Holds(**_cast(arrays, "holds.", _HOLDS)) if "holds.array" in arrays else None,
        staged=_staged(description.staged_on, arrays),
        files=DataFiles(files.names, np.array(files.size_bytes), files.locations) if files else None,
        name=description.tasks_name,
    )


def _dependencies(arrays: dict[str, NDArray[Any]], n_tasks: int) -> Dependencies | None:
    if "dependencies.task" not in arrays:
        return None
    columns = _cast(arrays, "dependencies.", _PAIRS)
    if len({len(column) for column in columns.values()}) > 1:
        raise InputError("dependencies.task and its other columns must have as many rows.")
    pairs = Dependencies(**columns, blocks=_blocks(arrays))
    if any(int(each.task[-1]) >= n_tasks for each in pairs.blocks):
        raise InputError(f"blocks.task must be at most {n_tasks - 1}.")
    if pairs.task.max(initial=-1) >= n_tasks or (np.diff(pairs.task) < 0).any():
        raise InputError(f"dependencies.task must ascend, to {n_tasks - 1} at most.")
    return pairs


def _block_arrays(blocks: Sequence[Block]) -> dict[str, NDArray[Any]]:
    """Return the columns of `_BLOCKS`: ids of all blocks, and of each how many these are, its kind and its delay."""
    if not blocks:
        return {}
    own, others = ([getattr(each, name) for each in blocks] for name in ("task", "on"))
    columns = {
        "task": np.concatenate(own),
        "on": np.concatenate(others),
        "tasks": np.array([len(each) for each in own]),
        "others": np.array([len(each) for each in others]),
        "kind": np.array([int(each.kind) for each in blocks]),
        "delay_s": np.array([each.delay_s for each in blocks]),
    }
    return {f"blocks.{name}": column for name, column in columns.items()}


def _blocks(arrays: dict[str, NDArray[Any]]) -> tuple[Block, ...]:
    if "blocks.task" not in arrays:
        return ()
    columns = _cast(arrays, "blocks.", _BLOCKS)
    for ids, counts in (("task", "tasks"), ("on", "others")):
        if (columns[counts] < 0).any() or columns[counts].sum() != len(columns[ids]):
            raise InputError(f"blocks.{counts} must count the rows of blocks.{ids}.")
    if len({len(columns[name]) for name in ("tasks", "others", "kind", "delay_s")}) > 1:
        raise InputError("blocks.tasks and its other columns must have as many rows.")
    own, others = (
        np.split(columns[ids], np.cumsum(columns[counts])[:-1]) for ids, counts in (("task", "tasks"), ("on", "others"))
    )
    rest = zip(own, others, columns["kind"].tolist(), columns["delay_s"].tolist(), strict=True)
    return tuple(Block(*each) for each in rest)


def _staged(host: str, arrays: dict[str, NDArray[Any]]) -> StagedFiles | None:
    if "staged.task" not in arrays:
        return None
    columns = _cast(arrays, "staged.", _STAGED)
    if len({len(column) for column in columns.values()}) > 1:
        raise InputError("staged.task and its other columns must have as many rows.")
    return StagedFiles(host, **columns)


def _check_platform(platform: Platform) -> None:
    """Raise `InputError` unless all speeds, powers and times are finite and not negative."""
    others = [host for _, host in platform.idle_hosts_named]
    for host in (*platform.hosts, *others):
        numbers = [host.off_w, host.boot_time_s, host.shutdown_time_s, host.embodied_kg, host.lifetime_years]
        numbers += [x for p in host.all_pstates for x in astuple(p)]
        is_legal = all(0 <= number <= LARGEST_RESULT for number in numbers)
        if not (is_legal and host.pstates and host.cores >= 1):
            raise InputError(
                f"platform: host {host.name!r} needs a core, a P-state, and speeds, powers, "
                "embodied carbon, and times to boot, to shut down and in service that are finite and at least 0."
            )
    for partition in platform.partitions:
        if not all(0 <= h < len(platform) for h in (*partition.hosts, -(not partition.hosts))):
            raise InputError(f"platform: partition {partition.name!r} needs hosts from 0 to {len(platform) - 1}.")


def _classes(arrays: dict[str, NDArray[Any]]) -> UtilityClasses:
    columns = _cast(arrays, "classes.", _CLASSES)
    classes = UtilityClasses(**columns)
    first, rows = classes.first, {len(columns[name]) for name, dtype in _CLASSES.items() if dtype is np.float64}
    ends = (0, len(classes.start_time))
    if len(rows) > 1 or len(first) != len(classes) + 1 or (first[0], first[-1]) != ends or (np.diff(first) < 1).any():
        raise InputError(f"classes.first must ascend from 0 to {ends[1]}, the rows of all columns.")
    fractions = classes.start_fraction
    if not ((fractions >= 0) & (fractions <= 1)).all():
        raise InputError("classes.start_fraction must be from 0 to 1.")
    return classes
