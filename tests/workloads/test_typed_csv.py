"""The user's own measurements as CSV: there and back, and what is wrong with a line."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from gridsched.errors import InputError
from gridsched.workloads.load import read_generator, read_system_workload, read_workload
from gridsched.workloads.measured_times import read_measurements
from gridsched.workloads.typed_csv import file_names, write_workload_files

ROOT = Path(__file__).resolve().parents[2]
MULTICORES = ROOT.parent / "shared/data/machines/multicores_etc_apc.csv"

FILES = {
    "machines.csv": "machine_type,count\nsmall,2\nbig,1\n",
    "etc.csv": (
        "task_type,machine_type,pstate,etc_s\n"
        "sort,small,0,600\nsort,small,1,840.5\nsort,big,0,300\nsort,big,1,420\nfft,big,0,1200\n"
    ),
    "apc.csv": (
        "task_type,machine_type,pstate,apc_w\n"
        "sort,small,0,100\nsort,small,1,65\nsort,big,0,200\nsort,big,1,130\nfft,big,0,199.5\n"
    ),
    "classes.csv": (
        "utility_class,start_time,start_fraction,urgency_modifier,kind\n"
        "0,0,1,1,\n0,20,0.6,0.5,\n0,40,0.2,2,\n0,60,0,1,decaying\n"
        "1,0,1,1,linear\n1,2,1,1,linear\n1,4,0,1,linear\n"
    ),
    "tasks.csv": (
        "id,submit_time_s,task_type,priority,urgency,utility_class\n# two tasks\n7,120.25,fft,8,0.1,0\n3,0,sort,4,0,1\n"
    ),
}
KEYS = "".join(f'{part}_csv = "{part}.csv"\n' for part in ("machines", "etc", "apc", "classes", "tasks"))


def written(folder: Path, changes: dict[str, str] | None = None, toml: str = KEYS) -> Path:
    """Write the example's files, some of them changed, and return the TOML's path."""
    for name, text in {**FILES, **(changes or {})}.items():
        (folder / name).write_text(text)
    path = folder / "measured.toml"
    path.write_text('kind = "utility"\ndays = 1\n' + toml)
    return path


@pytest.mark.systems("robust", "utility")
def test_measured_values_arrive_where_they_belong(tmp_path: Path):
    """Types in the files' order; what has no line is infeasible; paths follow the TOML."""
    whole = read_system_workload(written(tmp_path))
    types, tasks = whole.types, whole.tasks
    assert types.task_type_names == ("sort", "fft")
    assert types.host_type_names == ("small", "big")
    assert types.host_type.tolist() == [0, 0, 1]
    inf = np.inf
    assert types.etc.tolist() == [[[600, 840.5], [300, 420]], [[inf, inf], [1200, inf]]]
    assert types.apc[np.isfinite(types.etc)].tolist() == [100, 65, 200, 130, 199.5]
    assert [host.name for host in whole.platform.hosts] == ["small-1", "small-2", "big-1"]
    assert tasks.labels.tolist() == [3, 7]
    assert tasks.submit_time_s.tolist() == [0, 120.25]
    assert tasks.task_type.tolist() == [0, 1]
    assert tasks.utility.value([0, 1], [180.0, 180.0]) == pytest.approx([2.0, 5.9265], abs=5e-5)


@pytest.mark.systems("robust", "utility")
def test_without_tasks_the_measured_types_arrive_in_waves(tmp_path: Path):
    """The generator draws arrivals for the types of the ETC file."""
    toml = "".join(line + "\n" for line in KEYS.splitlines() if "tasks" not in line)
    whole = read_system_workload(written(tmp_path, toml=toml + "tasks_per_type = 500\n"))
    counts = np.bincount(whole.tasks.task_type, minlength=2)
    assert len(counts) == 2
    assert (counts > 200).all()


@pytest.mark.systems("robust", "utility")
@pytest.mark.parametrize("example", ["utility_small.toml", "measured"])
def test_what_is_written_is_read_back_exactly(tmp_path: Path, example: str):
    """Tasks, machines, ETC, APC, classes and settings, to the last bit."""
    source = written(tmp_path) if example == "measured" else ROOT / "examples" / example
    whole, spec = read_system_workload(source), read_generator(source)
    (tmp_path / "out").mkdir()
    target = tmp_path / "out" / "w.csv"
    paths = write_workload_files(whole.tasks, whole.types, target, spec.settings_beside_files())
    assert sorted(path.name for path in paths) == [
        "w.csv",
        "w.toml",
        "w_apc.csv",
        "w_classes.csv",
        "w_etc.csv",
        "w_machines.csv",
    ]
    back = read_system_workload(target.with_suffix(".toml"))
    for name in ("etc", "apc", "host_type"):
        assert np.array_equal(getattr(back.types, name), getattr(whole.types, name))
    assert back.types.task_type_names == whole.types.task_type_names
    assert back.types.host_type_names == whole.types.host_type_names
    for name in ("labels", "submit_time_s", "flops", "task_type"):
        assert np.array_equal(getattr(back.tasks, name), getattr(whole.tasks, name))
    for name in ("priority", "urgency", "utility_class"):
        assert np.array_equal(getattr(back.tasks.utility, name), getattr(whole.tasks.utility, name))
    classes = (back.tasks.utility.classes, whole.tasks.utility.classes)
    for name in ("first", "start_time", "start_fraction", "end_fraction", "kind"):
        assert np.array_equal(*(getattr(each, name) for each in classes))
    assert np.array_equal(*(each.urgency_modifier for each in classes))
    for name in ("rules", "window_s"):
        assert getattr(back, name) == getattr(whole, name)
    assert [host.name for host in back.platform.hosts] == [h.name for h in whole.platform.hosts]


@pytest.mark.systems("robust", "utility")
def test_existing_files_are_kept(tmp_path: Path):
    """One file in the way, and none is written."""
    whole = read_system_workload(written(tmp_path))
    target = tmp_path / "w.csv"
    file_names(target)["apc_csv"].write_text("mine")
    with pytest.raises(InputError, match=r"w_apc\.csv"):
        write_workload_files(whole.tasks, whole.types, target, {})
    assert not target.exists()
    write_workload_files(whole.tasks, whole.types, target, {}, force=True)
    assert target.exists()


@pytest.mark.systems("robust", "utility")
@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("machines.csv", "small,2", "small,-2", r"machines.csv, line 2: count is '-2'; it must"),
        ("machines.csv", "small,2", "small,two", r"line 2: count is 'two'; it must be a whole"),
        ("machines.csv", "big,1", "small,1", r"line 3: machine_type is 'small'; line 2"),
        ("machines.csv", "small,2\nbig,1", "small,0\nbig,0", r"machines.csv: no machines"),
        ("machines.csv", "count", "number", r"machines.csv, line 1: no column 'count'"),
        (
            "etc.csv",
            "sort,small,0,600",
            "sort,smal,0,600",
            r"etc.csv, line 2: machine_type is 'smal'; .*machines.csv does not have it. Did you mean "
            r"'small'\?",
        ),
        ("etc.csv", "0,600", "0,0", r"etc.csv, line 2: etc_s is '0'; it must be a finite"),
        ("etc.csv", "0,600", "0,inf", r"etc.csv, line 2: etc_s is 'inf'"),
        ("etc.csv", "0,600", "-1,600", r"etc.csv, line 2: pstate is '-1'; it must lie from 0"),
        ("etc.csv", "1,840.5", "0,840.5", r"etc.csv, line 3: pstate is '0'; line 2 has the same"),
        ("etc.csv", "sort,small,0", ",small,0", r"etc.csv, line 2: task_type is ''; a name"),
        (
            "apc.csv",
            "fft,big,0,199.5\n",
            "",
            r"apc.csv: no line for task type 'fft', machine type 'big' and P-state 0, which .*"
            r"etc.csv, line 6",
        ),
        ("etc.csv", "fft,big,0,1200\n", "", r"apc.csv, line 6: .*etc.csv has no line for task type 'fft'"),
        ("apc.csv", "0,100", "0,-1", r"apc.csv, line 2: apc_w is '-1'; it must be a finite"),
        ("classes.csv", "0,20,0.6", "0,20,1.6", r"classes.csv, lines 2 to 5: start fractions"),
        ("classes.csv", "0,20,0.6", "0,0,0.6", r"classes.csv, lines 2 to 5: start times"),
        ("classes.csv", "0,20,0.6", "5,20,0.6", r"classes.csv, line 3: utility_class is '5'; "),
        ("classes.csv", "1,0,1", "1,1,1", r"classes.csv, lines 6 to 8: start times \[1.0, 2.0, 4"),
        ("classes.csv", "1,4,0", "1,1,0", r"classes.csv, lines 6 to 8: start times \[0.0, 2.0, 1"),
        ("classes.csv", "2,1,1,linear", "2,1,1,lines", r"line 8: kind is .*allowed: one of"),
        ("tasks.csv", "3,0,sort", "7,0,sort", r"tasks.csv, line 4: id is '7'; line 3 has the same"),
        ("tasks.csv", "3,0,sort", "3,-1,sort", r"tasks.csv, line 4: submit_time_s is '-1'"),
        ("tasks.csv", "3,0,sort", "3,0,sorts", r"tasks.csv, line 4: task_type is 'sorts'; .*Did you mean 'sort'"),
        ("tasks.csv", "fft,8", "fft,nan", r"tasks.csv, line 3: priority is 'nan'"),
        ("tasks.csv", "0.1,0", "-0.1,0", r"tasks.csv, line 3: urgency is '-0.1'"),
        ("tasks.csv", "0.1,0", "0.1,2", r"line 3: utility_class is '2'; it must lie from 0 to 1"),
        ("tasks.csv", "0.1,0", "0.1", r"tasks.csv, line 3: 5 cells where the header has 6"),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, file: str, old: str, new: str, message: str):
    """File, line, what was found and what is allowed."""
    assert old in FILES[file]
    path = written(tmp_path, {file: FILES[file].replace(old, new, 1)})
    with pytest.raises(InputError, match=message):
        read_system_workload(path)


@pytest.mark.systems("robust", "utility")
@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ('etc_csv = "etc.csv"\n', "measured.toml: machines_csv is missing; machines_csv, etc_csv"),
        (KEYS + "task_types = 3\n", "task_types has no effect beside etc_csv"),
        (KEYS + "wave_amplitude = [0.1, 0.2]\n", "wave_amplitude has no effect beside tasks_csv"),
        (KEYS + "n_classes = 3\n", "n_classes has no effect beside classes_csv"),
        (KEYS + 'measurements_csv = "m.csv"\n', "apc_csv has no effect beside measurements_csv"),
        (KEYS + "day = 3\n", r"day is not a known key. Did you mean 'days'\?"),
        ("seed = -1\n", r"measured.toml: seed is -1; it should be greater than or equal to 0"),
        ("wave_amplitude = [0.9, 0.2]\n", r"wave_amplitude is \[0.9, 0.2\]; the first, 0.9, must"),
        ("task_types = 3\n", "measured.toml: special_task_types are 17 in all"),
        ('tasks_csv = "none.csv"\n', "none.csv: cannot be read"),
    ],
)
def test_bad_keys_are_named(tmp_path: Path, toml: str, message: str):
    """The TOML's name, the key, and what to do."""
    with pytest.raises(InputError, match=message):
        read_system_workload(written(tmp_path, toml=toml))


@pytest.mark.systems("utility")
def test_kinds_of_generators(tmp_path: Path):
    """A misspelt kind is guessed; a bag has no system; a system is not a bag."""
    path = tmp_path / "w.toml"
    path.write_text('kind = "utilty"\n')
    with pytest.raises(InputError, match=r"w\.toml.*'utilty'.*'utility'"):
        read_system_workload(path)
    with pytest.raises(InputError, match=r"bag, .*utility"):
        read_workload(path)
    assert read_system_workload(ROOT / "examples/bag.toml") is None
    assert read_system_workload(ROOT / "examples/ex_a.csv") is None
    with pytest.raises(InputError, match=r"utility.*machines"):
        read_workload(ROOT / "examples/utility_small.toml")


MEASURED = """machine,program,cores,freq,time_s,avg_power_W
old/one,sort,2,1.0GHz,90,30
old/one,sort,4,1.0GHz,60,50
old/one,sort,4,2.0GHz,40,80
old/one,fft,4,2.0GHz,100,85
new,sort,8,3.00GHz,10,120
new,sort,8,1500 MHz,18,70
"""


def test_pstates_of_measurements_are_frequencies(tmp_path: Path):
    """The highest frequency is P-state 0; lines with fewer cores are passed over."""
    (tmp_path / "m.csv").write_text(MEASURED)
    types = read_measurements(tmp_path / "m.csv", {"new": 2, "old/one": 1})
    assert types.task_type_names == ("sort", "fft")
    assert types.host_type.tolist() == [0, 0, 1]
    inf = np.inf
    assert types.etc.tolist() == [[[10, 18], [40, 60]], [[inf, inf], [100, inf]]]
    assert types.apc[0].tolist() == [[120, 70], [80, 50]]
    assert len(read_measurements(tmp_path / "m.csv").host_type) == 2


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("3.00GHz", "3.00", r"m.csv, line 6: freq is '3.00'; it must be a frequency with its unit"),
        ("3.00GHz", "3.0.0GHz", r"line 6: freq is '3.0.0GHz'"),
        ("1500 MHz", "3.0GHz", r"line 7: freq is '3.0GHz'; an earlier line has the same machine"),
        ("new,sort,8", "new,sort,0", r"line 6: cores is '0'; it must be at least 1"),
        ("10,120", "0,120", r"line 6: time_s is '0'"),
        ("10,120", "10,-1", r"line 6: avg_power_W is '-1'"),
        ("new,sort", ",sort", r"line 6: machine is ''; a name"),
    ],
)
def test_bad_measurements_are_named(tmp_path: Path, old: str, new: str, message: str):
    """File, line, what was found and what is allowed."""
    assert old in MEASURED
    (tmp_path / "m.csv").write_text(MEASURED.replace(old, new, 1))
    with pytest.raises(InputError, match=message):
        read_measurements(tmp_path / "m.csv")


def test_unknown_machines_of_measurements_are_refused(tmp_path: Path):
    """A count for a machine that was not measured."""
    (tmp_path / "m.csv").write_text(MEASURED)
    with pytest.raises(InputError, match=r"'nev'.*'new'"):
        read_measurements(tmp_path / "m.csv", {"nev": 1})


@pytest.mark.systems("utility")
@pytest.mark.skipif(not MULTICORES.exists(), reason="shared/data/machines is not in this checkout")
def test_the_multicore_measurements(tmp_path: Path):
    """Every line of the published table is an entry, on hosts with names SimGrid takes."""
    path = tmp_path / "m.toml"
    path.write_text(f'kind = "utility"\ndays = 1\nmeasurements_csv = "{MULTICORES}"\ntasks_per_type = 30\n')
    whole = read_system_workload(path)
    with MULTICORES.open(newline="") as stream:
        lines = list(csv.DictReader(stream))
    types = whole.types
    assert np.isfinite(types.etc).sum() == len(lines)
    for line in lines:
        i = types.task_type_names.index(line["program"])
        j = types.host_type_names.index(line["machine"])
        assert types.etc[i, j, 0] == float(line["time_s"])
        assert types.apc[i, j, 0] == float(line["avg_power_W"])
    assert [host.name for host in whole.platform.hosts][:2] == ["amd-1", "arm-1"]
    assert not any(set(host.name) & set("/: ") for host in whole.platform.hosts)
    assert len(whole.tasks) > 0


@pytest.mark.systems("robust", "utility")
def test_typed_tasks_may_have_deadlines(tmp_path: Path):
    """The column is read, an empty cell is none, and both are written again."""
    text = (
        "id,submit_time_s,task_type,priority,urgency,utility_class,deadline_s\n"
        "7,120.25,fft,8,0.1,0,\n3,0,sort,4,0,1,99.5\n"
    )
    whole = read_system_workload(written(tmp_path, {"tasks.csv": text}))
    assert whole.tasks.deadline_s.tolist() == [99.5, np.inf]
    files = write_workload_files(whole.tasks, whole.types, tmp_path / "again.csv", {"days": 1})
    again = read_system_workload(files[-1])
    assert again.tasks.deadline_s.tolist() == [99.5, np.inf]
