"""Schedulers named by their files: classes, neighbors, names."""

from __future__ import annotations

import py_compile
import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest
from cli_cases import ROOT

from gridsched.policy.registry import entries
from gridsched.runs.study import Study

#: Each task goes to the host whose number a helper beside it returns.
POLICY = '''
from gridsched import Assign, Scheduler, Traits
from {helper} import HOST


class First(Scheduler):
    """All tasks go to one host."""

    traits = Traits(trigger="arrival")

    def __init__(self, shift=0):
        self.shift = shift

    def prepare(self, system, rng):
        self.host_ = HOST + self.shift

    def schedule(self, state):
        for task in state.waiting():
            yield Assign(task, self.host_)


class Second(First):
    """The same."""
'''


@pytest.fixture
def policy(write, request) -> Path:
    """Write a file with two schedulers and the helper that it imports."""
    name = request.node.name.partition("[")[0]
    write(f"helper_of_{name}.py", "HOST = 1\n")
    return write(f"own_{name}.py", POLICY.format(helper=f"helper_of_{name}"))


@pytest.mark.usefixtures("simgrid")
def test_a_file_is_as_good_as_an_id(gridsched, ex_a, policy):
    """All 5250 flop on h2 (50 flop/s) take 105 s; on SimGrid, too, which gets the neighbor."""
    outcome = gridsched("run", *ex_a, "--scheduler", f"{policy}:First", "--json")
    assert outcome.json["makespan_s"] == 105
    files = [Path(name).name for name in outcome.json["provenance"]["inputs"]]
    assert files[2:] == [policy.name, f"helper_of_{policy.stem.removeprefix('own_')}.py"]


def test_bytecode_beside_a_file_is_neither_believed_nor_written(gridsched, ex_a, policy, tmp_path, monkeypatch):
    """What another has compiled, and lets pass for this file, is not what one has read."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    (tmp_path / "foreign.py").write_text("raise RuntimeError('foreign')")
    compiled = cache_from_source(str(policy))
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(tmp_path / "foreign.py"), compiled, invalidation_mode=unchecked)
    before = Path(compiled).read_bytes()
    outcome = gridsched("run", *ex_a, "--scheduler", f"{policy}:First", "--driver", "reference", "--json")
    assert (outcome.err, outcome.json["makespan_s"]) == ("", 105)
    assert [path.read_bytes() for path in Path(compiled).parent.iterdir()] == [before]


def test_its_class_is_its_name(gridsched, ex_a, policy):
    """Rows and --set call it by its class; shifted by 1 to h3 (25 flop/s) it takes 210 s."""
    both = f"{policy}:First,mct,{policy}:Second"
    options = ["--driver", "reference", "--set", "Second.shift=1", "--json"]
    rows = gridsched("compare", *ex_a, "--schedulers", both, *options).json["results"]
    assert [row["scheduler"] for row in rows] == ["First", "mct", "Second"]
    assert [rows[0]["makespan_s"], rows[2]["makespan_s"]] == [105, 210]


def test_files_are_listed(gridsched, policy):
    """The names to use, with summaries and parameters."""
    text = gridsched("schedulers", policy).out
    assert [line.split()[0] for line in text.splitlines() if not line.startswith(" ")] == ["First", "Second"]
    assert "Parameters: shift=0" in text


@pytest.mark.parametrize(
    ("ending", "words"), [("", "holds 2 schedulers; name one of them"), (":Frist", "Did you mean 'First'?")]
)
def test_one_of_several_must_be_named(refused, ex_a, policy, ending, words):
    """The message lists what there is."""
    line = refused("run", *ex_a, "--driver", "reference", "--scheduler", f"{policy}{ending}")
    assert words in line


def test_what_is_no_scheduler_is_told(refused, ex_a, write):
    """No file, no scheduler in it, or an error of its own: one line each."""
    run = ["run", *ex_a, "--driver", "reference", "--scheduler"]
    assert "no such file" in refused(*run, "nowhere.py")
    assert "holds no class" in refused(*run, write("empty_policy.py", "x = 1\n"))
    line = refused(*run, write("faulty_policy.py", "1 / 0\n"))
    assert "cannot be imported: ZeroDivisionError" in line


@pytest.mark.parametrize("driver", ["reference", "simgrid"])
def test_what_a_policy_lacks_is_told_with_its_file(refused, simgrid, ex_a, write, driver):
    """An error class of gridsched's that a file of the user's own raises: its text, the file and the line."""
    text = """from gridsched.errors import MissingDependency
from gridsched.schedulers.bag.baselines import WorkQueue


class Lacking(WorkQueue):
    '''Needs a solver.'''

    def schedule(self, state):
        raise MissingDependency('my solver is not here.')
"""
    line = refused("run", *ex_a, "--driver", driver, "--scheduler", write("lacking_policy.py", text))
    assert "my solver is not here (lacking_policy.py:9 in schedule)." in line


def test_a_study_of_policies(gridsched, tmp_path):
    """The shipped example: classes of `policies` are listed beside ids, unregistered."""
    study = ROOT / "examples/own_study.toml"
    text = study.read_text().replace('name = "own"', 'name = "own"\ndriver = "reference"')
    copy = tmp_path / "own.toml"
    copy.write_text(
        text.replace('"../', f'"{ROOT}/').replace('"energy_delay.py"', f'"{ROOT}/examples/energy_delay.py"')
    )
    outcome = gridsched("study", "check", copy, "--json", "--trust")
    assert outcome.status == 0, outcome.err
    assert "EnergyDelay" in outcome.out


def test_a_study_names_a_scheduler_by_its_file(gridsched, tmp_path):
    """As the command line does: the file is one of `policies`, the class its label; runs equal."""
    text = (ROOT / "examples/own_study.toml").read_text().replace('"../', f'"{ROOT}/')
    (tmp_path / "energy_delay.py").write_text((ROOT / "examples/energy_delay.py").read_text())
    (tmp_path / "by_id.toml").write_text(text)
    line = next(each for each in text.splitlines() if each.startswith("policies"))
    text = text.replace(f"{line}\n", "")
    (tmp_path / "by_file.toml").write_text(text.replace("EnergyDelay", "energy_delay.py"))
    (tmp_path / "by_class.toml").write_text(
        text.replace('"EnergyDelay"', '{ id = "energy_delay.py:EnergyDelay", label = "own" }')
    )
    names = ("by_id", "by_file", "by_class")
    by_id, by_file, by_class = (Study.from_file(tmp_path / f"{name}.toml", trust=True) for name in names)
    ids = [run.run_id for run in by_id.scenarios()]
    assert ids == [run.run_id for run in by_file.scenarios()]
    assert ids == [run.run_id for run in by_class.scenarios()]
    assert by_id.policies == by_file.policies
    assert [each.label for each in by_file.schedulers] == ["mct", "EnergyDelay", "lecsa"]
    assert by_class.schedulers[1].label == "own"
    (tmp_path / "wrong.toml").write_text(text.replace("EnergyDelay", "energy_delay.py:EnergyDelai"))
    outcome = gridsched("study", "check", tmp_path / "wrong.toml", "--trust")
    assert outcome.status == 2
    assert "schedulers[1].id is wrong" in outcome.err
    assert "Did you mean 'EnergyDelay'?" in outcome.err


#: A metric beside a scheduler.
METRIC = """
from gridsched import Metric, register_metric
from gridsched.schedulers.bag.baselines import WorkQueue

class Measured(WorkQueue):
    pass

register_metric(Metric("half_tasks", "", "half of the tasks", lambda run: len(run.trace.tasks) / 2))
"""


def test_a_metric_of_ones_own_is_shown(gridsched, ex_a, write):
    """EX-A has five tasks: the tables of a run and of a comparison have 2.5."""
    file = write("own_metric.py", METRIC)
    alone = gridsched("run", *ex_a, "--scheduler", file, "--driver", "reference").out
    assert ["half", "tasks", "2.5"] in [line.split() for line in alone.splitlines()]
    both = gridsched("compare", *ex_a, "--schedulers", file, "--driver", "reference").out
    row = next(line for line in both.splitlines() if line.startswith("Measured"))
    assert "half tasks" in both
    assert row.split()[-1] == "2.50000"


@pytest.mark.systems("robust", "utility")
def test_one_scheduler_is_explained(gridsched, refused, monkeypatch):
    """Each parameter with its meaning and default, the workloads, the source and a command that works."""
    monkeypatch.chdir(ROOT)
    shipped = [each for each in entries() if each.target.startswith("gridsched.")]
    found = gridsched("schedulers", *(each.id for each in shipped), "--json").json["schedulers"]
    for entry, row in zip(shipped, found, strict=True):
        assert (row["id"], row["accepts"], row["source"]) == (entry.id, list(entry.accepts), entry.source)
        assert set(row["meanings"]) == set(row["parameters"]), entry.id
        assert all(row["meanings"].values()), entry.id
        assert row["example"].endswith(f" --scheduler {entry.id}")
    text = gridsched("schedulers", "idle_off").out
    for words in ("timeout_s=None", "parallel", "power saving guide", "hosts that are idle for `timeout_s`"):
        assert words in text
    for row in (row for row in found if row["id"] in ("mct", "max_upe", "easy_backfilling", "cheapest_in_time")):
        assert gridsched(*row["example"].split()[1:], "--driver", "reference").status == 0
    assert "'lecsa'" in refused("schedulers", "LECSA")
