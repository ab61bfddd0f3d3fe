"""Whatever a policy does: one line or the right result, no hang, and no harm to its neighbors."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from cli_cases import ROOT
from hostile_policies import ASKED, ELSEWHERE, IMPORTED, SLOW

from gridsched.campaign.store import Store
from gridsched.errors import InputError
from gridsched.files.output_files import is_alive
from gridsched.metrics import METRICS, Metric, register_metric

DRIVERS = ("reference", "simgrid")
KINDS = {kind: words for kind, (_, words) in ASKED.items()} | ELSEWHERE
#: Kinds whose own process is in danger, or that of others, for the campaigns of the normal run.
WORST = (
    "sys_exit",
    "os_exit_0",
    "sigkill",
    "write_to_all",
    "patch_numpy",
    "patch_builtins",
    "remove_scratch",
    "leave_daemon",
)
#: Kinds that fail before a campaign begins, or take long.
NEVER = ("parameters_raise", "init_exits", "init_raises", "stop_parent")
ALL = tuple(kind for kind in KINDS if kind not in NEVER)
#: What represents all in the normal run, where each kind calls several commands.
QUICK = ("reference", "sys_exit")
PAST = b"what an earlier run has left"

pytestmark = pytest.mark.usefixtures("simgrid")


def limit_s(words: str) -> float:
    """Return the time-out of a run: short only where it is what ends it."""
    return 1.0 if words == "time-out" else 60.0


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Write the file of hostile policies as a user's own."""
    path = tmp_path / "hostile.py"
    path.write_bytes((Path(__file__).parent / "hostile_policies.py").read_bytes())
    return path


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """A folder that the policies may remove."""
    path = tmp_path / "scratch"
    path.mkdir()
    return path


def is_one_line(err: str, words: str) -> bool:
    """Whether a problem is one line a user can do something with."""
    return (
        err.count("\n") == 1
        and err.startswith("gridsched: ")
        and words in err
        and len(err) < 1000
        and "Traceback" not in err
        and "internal error" not in err
    )


def check_gone(folder: Path) -> None:
    """What a policy has started is no more, and nothing was done at the end of its process."""
    daemon, deadline = folder / "daemon", time.monotonic() + 60
    while daemon.exists() and is_alive(int(daemon.read_text())):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert not (folder / "atexit").exists()


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("kind", [pytest.param(k, marks=pytest.mark.long if k in SLOW else ()) for k in KINDS])
def test_harm_ends_with_its_run(
    gridsched: Callable, ex_a: list[str], tmp_path: Path, file: Path, scratch: Path, driver: str, kind: str
):
    """A failed run is one line and leaves files alone; one that ends is as a work queue's."""
    out, words = tmp_path / "out.json", KINDS[kind]
    out.write_bytes(PAST)
    outcome = gridsched(
        "run",
        *ex_a,
        "--driver",
        driver,
        "--scheduler",
        f"{file}:Hostile",
        "--quiet",
        "--set",
        f"kind={kind}",
        "--set",
        f"folder={scratch}",
        "--timeout-s",
        limit_s(words),
        "-o",
        out,
        "--force",
    )
    check_gone(scratch)
    if outcome.status == 0:
        assert words in ("finishes", "either")
        assert json.loads(out.read_bytes())["makespan_s"] == 80.0
        assert outcome.err == ""
    else:
        assert words != "finishes", outcome.err
        assert is_one_line(outcome.err, "" if words == "either" else words), outcome.err
        assert outcome.status == (2 if words == "cannot be sent" else 1)
        assert out.read_bytes() == PAST
    neighbour = gridsched("run", *ex_a, "--driver", driver, "--scheduler", "wq", "--json")
    assert neighbour.json["makespan_s"] == 80.0
    assert {path.name for path in tmp_path.iterdir()} - {"scratch"} == {"hostile.py", "out.json"}


def study_text(driver: str, file: Path, entries: list[str]) -> str:
    """Return a study of example EX-A with a policy."""
    return (
        f'name = "s"\ndriver = "{driver}"\npolicies = ["{file}"]\n'
        f'platform = "{ROOT}/platforms/ex_a.xml"\nworkload = "{ROOT}/examples/ex_a.csv"\n'
        f"schedulers = [{', '.join(entries)}]\n"
    )


@pytest.mark.parametrize("kind", IMPORTED)
@pytest.mark.parametrize("command", ["run", "compare", "study check", "study run"])
def test_harm_at_import_is_bad_input(gridsched: Callable, ex_a: list[str], tmp_path: Path, command: str, kind: str):
    """One line, exit status 2, and nothing is written; what does no harm runs."""
    text, words = IMPORTED[kind]
    file, study = tmp_path / f"imported_{kind}.py", tmp_path / "s.toml"
    sound = "from gridsched.schedulers.bag.baselines import WorkQueue as W\nclass Sound(W): pass"
    file.write_text(f"{text}\n{sound}\n")
    study.write_text(study_text("reference", file, ['"Sound"']))
    words_of = {
        "run": ["run", *ex_a, "--driver", "reference", "--scheduler", file],
        "compare": ["compare", *ex_a, "--driver", "reference", "--schedulers", f"{file},wq"],
        "study check": ["study", "check", study, "--samples", "1", "--trust"],
        "study run": ["study", "run", study, "--store", tmp_path / "store", "--trust"],
    }
    outcome = gridsched(*words_of[command], "--timeout-s", limit_s(words))
    assert "Traceback" not in outcome.err
    if words:
        assert outcome.status == 2
        assert is_one_line(outcome.err, words), outcome.err
        assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    ("driver", "kind"),
    [
        pytest.param(driver, kind, marks=pytest.mark.long if (driver, kind) != QUICK else ())
        for driver in DRIVERS
        for kind in ("sys_exit", "os_exit_0", "generator_exit", "unprintable")
    ],
)
def test_harm_fails_its_own_run_in_every_command(
    gridsched: Callable, ex_a: list[str], tmp_path: Path, file: Path, driver: str, kind: str
):
    """It is reported with exit status 1; the other schedulers have their rows."""
    both = ["--schedulers", f"{file}:Hostile,wq", "--set", f"Hostile.kind={kind}"]
    outcome = gridsched("compare", *ex_a, "--driver", driver, *both, "--json")
    assert (outcome.status, len(outcome.json["results"])) == (1, 1)
    assert f"Hostile: {KINDS[kind]}" in outcome.err or "exit status 0" in outcome.err
    if driver == "simgrid":
        outcome = gridsched("validate", *ex_a, *both, "--json")
        assert (outcome.status, len(outcome.json["hosts"]) > 0) == (1, True)
        assert KINDS[kind] in outcome.err
    (tmp_path / "s.toml").write_text(study_text(driver, file, [entry_of(kind, tmp_path)]))
    outcome = gridsched("study", "check", tmp_path / "s.toml", "--samples", 1, "--trust")
    assert outcome.status == 1
    assert KINDS[kind] in outcome.err


def entry_of(kind: str, folder: Path) -> str:
    """Return the entry of a study for a hostile policy."""
    return f'{{id = "Hostile", label = "{kind}", kind = "{kind}", folder = "{folder}"}}'


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("kinds", [WORST, pytest.param(ALL, marks=pytest.mark.long)], ids=["worst", "all"])
def test_neighbours_in_a_campaign_are_finished(
    gridsched: Callable,
    tmp_path: Path,
    file: Path,
    scratch: Path,
    monkeypatch: pytest.MonkeyPatch,
    driver: str,
    kinds: tuple[str, ...],
):
    """Sound schedulers between hostile ones are stored as finished, as in a quiet campaign."""
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr("tempfile.tempdir", None)
    good = [f'{{id = "wqr", label = "g{k}", max_replicas = {k + 1}}}' for k in range(len(kinds))]
    good[0] = '{id = "Hostile", label = "sound"}'
    mixed = []
    for entry, kind in zip(good, kinds, strict=True):
        mixed += [entry_of(kind, tmp_path if kind == "leave_daemon" else scratch), entry]
    rows = {}
    for name, entries, limit, status in (("quiet", good, 60, 0), ("mixed", mixed, 5, 1)):
        study, store = tmp_path / "s.toml", tmp_path / name
        study.write_text(study_text(driver, file, entries))
        outcome = gridsched(
            "study",
            "run",
            study,
            "--store",
            store,
            "--quiet",
            "--trust",
            "--workers",
            2,
            "--timeout-s",
            60 if kinds is WORST else limit,
        )
        assert outcome.status == status, outcome.err
        assert "Traceback" not in outcome.err
        check_gone(tmp_path)
        table = Store.open(store).rows().set_index("run_id")
        rows[name] = table[["status", "error", "makespan_s", "energy_j"]]
    assert len(rows["mixed"]) == 2 * len(kinds)
    assert (rows["quiet"]["status"] == "finished").all()
    pd.testing.assert_frame_equal(rows["mixed"].loc[rows["quiet"].index], rows["quiet"])
    hostile = rows["mixed"].drop(rows["quiet"].index)
    failed = hostile[hostile["status"] == "failed"]
    assert failed["error"].str.len().between(5, 600).all()
    assert (hostile[hostile["status"] == "finished"]["makespan_s"] == 80.0).all()
    n_failing = sum(KINDS[kind] not in ("finishes", "either") for kind in kinds)
    n_either = sum(KINDS[kind] == "either" for kind in kinds)
    assert n_failing <= len(failed) <= n_failing + n_either


#: A metric of a user's own in a policy's file.
METRIC = """
import sys
import numpy as np
from gridsched.metrics import Metric, register_metric
from gridsched.schedulers.bag.baselines import WorkQueue

class Measured(WorkQueue):
    pass

register_metric(Metric("own", "", "a number of my own", lambda run: {value}))
"""


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("2**70", "is a whole number of 71 bits"),
        ("10**5000", "bits"),
        ("'x'", "type str"),
        ("True", "type bool"),
        ("np.bool_(True)", "type bool"),
        ("[1]", "type list"),
        ("np.ones(2)", "type ndarray"),
        ("1 / 0", "ZeroDivisionError"),
        ("1j", "type complex"),
        ("sys.exit()", "SystemExit"),
        ("2**62", ""),
        ("np.float32(0.5)", ""),
        ("np.int8(3)", ""),
        ("float('nan')", ""),
        ("-float('inf')", ""),
        ("None", ""),
    ],
)
def test_odd_values_of_metrics_spoil_no_store(
    gridsched: Callable, ex_a: list[str], tmp_path: Path, value: str, words: str
):
    """A run with a value that no row can hold has failed, and is not done again and again."""
    file, store = tmp_path / f"measured_{abs(hash(value))}.py", tmp_path / "store"
    file.write_text(METRIC.format(value=value))
    (tmp_path / "s.toml").write_text(study_text("reference", file, ['"Measured"']))
    command = ["study", "run", tmp_path / "s.toml", "--store", store, "--quiet", "--trust"]
    before = dict(METRICS)
    try:
        for _ in range(2):
            outcome = gridsched(*command)
            assert outcome.status == (1 if words else 0), outcome.err
            assert words in outcome.err
            assert ("Metric 'own'" in outcome.err) == bool(words)
            (status,) = Store.open(store).rows()["status"]
            assert status == ("failed" if words else "finished")
        outcome = gridsched("run", *ex_a, "--driver", "reference", "--scheduler", file)
        assert outcome.status == (1 if words else 0), outcome.err
        assert words in outcome.err
    finally:
        METRICS.clear()
        METRICS.update(before)


@pytest.mark.parametrize("id", ["run_id", "status", "scheduler", "replicate"])
def test_a_metric_takes_no_other_column(id: str):
    """Rows have them already."""
    with pytest.raises(InputError, match="choose another id"):
        register_metric(Metric(id, "", "mine", len))
