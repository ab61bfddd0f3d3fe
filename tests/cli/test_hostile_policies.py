"""Whatever a policy does: one line or the right result, no hang, and no harm to its neighbours."""

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
from gridsched.files.scratch import is_alive

DRIVERS = ("reference", "simgrid")
KINDS = {kind: words for kind, (_, words) in ASKED.items()} | ELSEWHERE
#: Kinds whose own process is in danger, or that of others, for the campaigns of the normal run.
WORST = (
    "sys_exit", "os_exit_0", "sigkill", "write_to_all", "patch_numpy", "patch_builtins",
    "remove_scratch", "leave_daemon",
)  # fmt: skip
#: What is made by the campaign itself must be possible: the other kinds fail before.
ALL = tuple(kind for kind in KINDS if kind not in ("parameters_raise", "stop_parent"))
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
    """Whether a complaint is one line a user can do something with."""
    return (
        err.count("\n") == 1 and err.startswith("gridsched: ") and words in err
        and len(err) < 1000 and "Traceback" not in err and "internal error" not in err
    )  # fmt: skip


def check_gone(scratch: Path) -> None:
    """What a policy has started is no more."""
    deadline = time.monotonic() + 60
    while scratch.exists() and any(is_alive(int(each.read_text())) for each in scratch.iterdir()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=pytest.mark.long if k in SLOW else ()) for k in KINDS]
)
def test_harm_ends_with_its_run(
    gridsched: Callable, ex_a: list[str], tmp_path: Path, file: Path, scratch: Path, driver: str,
    kind: str,
):  # fmt: skip
    """A failed run is one line and leaves files alone; one that ends is as a work queue's."""
    out, words = tmp_path / "out.json", KINDS[kind]
    out.write_bytes(PAST)
    outcome = gridsched(
        "run", *ex_a, "--driver", driver, "--scheduler", f"{file}:Hostile", "--quiet",
        "--set", f"kind={kind}", "--set", f"folder={scratch}", "--timeout-s", limit_s(words),
        "-o", out, "--force",
    )  # fmt: skip
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
def test_harm_at_import_is_bad_input(
    gridsched: Callable, ex_a: list[str], tmp_path: Path, command: str, kind: str
):
    """One line, exit status 2, and nothing is written; what does no harm runs."""
    text, words = IMPORTED[kind]
    file, study = tmp_path / f"imported_{kind}.py", tmp_path / "s.toml"
    sound = "from gridsched.schedulers.bag.work_queue import WorkQueue\nclass Sound(WorkQueue): pass"
    file.write_text(f"{text}\n{sound}\n")
    study.write_text(study_text("reference", file, ['"Sound"']))
    words_of = {
        "run": ["run", *ex_a, "--driver", "reference", "--scheduler", file],
        "compare": ["compare", *ex_a, "--driver", "reference", "--schedulers", f"{file},wq"],
        "study check": ["study", "check", study, "--samples", "1"],
        "study run": ["study", "run", study, "--store", tmp_path / "store"],
    }
    outcome = gridsched(*words_of[command], "--timeout-s", limit_s(words))
    assert "Traceback" not in outcome.err
    if words:
        assert outcome.status == 2
        assert is_one_line(outcome.err, words), outcome.err
        assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("kind", ["sys_exit", "os_exit_0", "generator_exit", "unprintable"])
@pytest.mark.parametrize("driver", DRIVERS)
def test_harm_fails_its_own_run_in_every_command(
    gridsched: Callable, ex_a: list[str], tmp_path: Path, file: Path, driver: str, kind: str
):
    """It is told with exit status 1; the other schedulers have their rows."""
    both = ["--schedulers", f"{file}:Hostile,wq", "--set", f"Hostile.kind={kind}"]
    outcome = gridsched("compare", *ex_a, "--driver", driver, *both, "--json")
    assert (outcome.status, len(outcome.json["results"])) == (1, 1)
    assert f"Hostile: {KINDS[kind]}" in outcome.err or "exit status 0" in outcome.err
    if driver == "simgrid":
        outcome = gridsched("validate", *ex_a, *both, "--json")
        assert (outcome.status, len(outcome.json["hosts"]) > 0) == (1, True)
        assert KINDS[kind] in outcome.err
    (tmp_path / "s.toml").write_text(study_text(driver, file, [entry_of(kind, tmp_path)]))
    outcome = gridsched("study", "check", tmp_path / "s.toml", "--samples", 1)
    assert outcome.status == 1
    assert KINDS[kind] in outcome.err


def entry_of(kind: str, folder: Path) -> str:
    """Return the entry of a study for a hostile policy."""
    return f'{{id = "Hostile", label = "{kind}", kind = "{kind}", folder = "{folder}"}}'


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize(
    "kinds", [WORST, pytest.param(ALL, marks=pytest.mark.long)], ids=["worst", "all"]
)
def test_neighbours_in_a_campaign_are_finished(
    gridsched: Callable, tmp_path: Path, file: Path, scratch: Path,
    monkeypatch: pytest.MonkeyPatch, driver: str, kinds: tuple[str, ...],
):  # fmt: skip
    """Sound schedulers between hostile ones are stored as finished, as in a quiet campaign."""
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr("tempfile.tempdir", None)
    good = [f'{{id = "wqr", label = "g{k}", max_replicas = {k + 1}}}' for k in range(len(kinds))]
    good[0] = '{id = "Hostile", label = "sound"}'
    mixed = [entry for pair in zip(good, kinds, strict=True)
             for entry in (entry_of(pair[1], scratch), pair[0])]  # fmt: skip
    rows = {}
    for name, entries, limit, status in (("quiet", good, 60, 0), ("mixed", mixed, 5, 1)):
        study, store = tmp_path / "s.toml", tmp_path / name
        study.write_text(study_text(driver, file, entries))
        outcome = gridsched(
            "study", "run", study, "--store", store, "--quiet", "--workers", 2,
            "--timeout-s", 60 if kinds is WORST else limit,
        )  # fmt: skip
        assert outcome.status == status, outcome.err
        assert "Traceback" not in outcome.err
        table = Store.open(store).rows().set_index("run_id")
        rows[name] = table[["status", "error", "makespan_s", "energy_j"]]
    check_gone(scratch)
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
