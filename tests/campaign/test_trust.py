"""A store's Python files run only with the user's permission: reading it imports none of them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gridsched.analysis.study_results import read_results
from gridsched.campaign.campaign import run_campaign
from gridsched.campaign.rerun import rerun
from gridsched.campaign.store import Store
from gridsched.cli.app import main
from gridsched.errors import InputError, NotTrusted
from gridsched.metrics import METRICS
from gridsched.metrics.table import _DECLARED
from gridsched.policy import registry
from gridsched.runs.study import Study

ROOT = Path(__file__).resolve().parents[2]
POLICY = """
from pathlib import Path

from gridsched import Metric, register_metric
from gridsched.schedulers.bag.baselines import WQR

with open({marker!r}, "a") as stream:
    stream.write("imported")


class Patient(WQR):
    '''Work queue of one's own.'''


register_metric(Metric(
    "task_energy_j", "J", "energy over finished tasks",
    lambda row: row["energy_j"] / row["tasks_finished"], of="row", better="less",
))
register_metric(Metric(
    "last_host", "", "host of the last execution", lambda run: int(run.trace.executions["host"][-1])
))
"""
STUDY = f"""
name = "marked"
driver = "reference"
claims = "marked_claims.py"
policies = ["marked_policy.py"]
schedulers = ["wq", {{ id = "Patient", max_replicas = [2, 3] }}]
metrics = ["makespan_s", "last_host", "task_energy_j", "makespan_above_bound"]
baseline = "wq"
platform = "{ROOT}/platforms/ex_a.xml"
workload = {{ generator = "bag", tasks = 4, mean_flops = 100, heterogeneity = 1 }}

[[figures]]
name = "patience"
kind = "lines"
metric = "makespan_s"
along = "max_replicas"
"""
CLAIMS = """
from pathlib import Path

from gridsched.reproduction.claim_statistics import mean
from gridsched.runs.claims_schema import Claim, Ground

Path({marker!r}).touch()
CLAIMS = [
    Claim("own", "number", "", "by hand", mean("makespan_s", "Patient(max_replicas=2)"), (0.0, 1e9),
          Ground("before", "made up"), paper=0.0)
]
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with such a study and its store; ``marker`` shows that the policy was imported."""
    before = dict(METRICS)
    folder = tmp_path_factory.mktemp("marked")
    (folder / "marked_policy.py").write_text(POLICY.format(marker=str(folder / "marker")))
    (folder / "marked_claims.py").write_text(CLAIMS.format(marker=str(folder / "marker")))
    (folder / "marked.toml").write_text(STUDY)
    command = ["study", "run", folder / "marked.toml", "--store", folder / "results", "--quiet", "--trust"]
    assert main([str(word) for word in (*command, "--workers", 1)]) == 0
    assert (folder / "marker").exists()
    yield folder
    METRICS.clear()
    METRICS.update(before)


@pytest.fixture
def store(made: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The store, to a process that has never seen the policy."""
    (made / "marker").unlink(missing_ok=True)
    before = dict(METRICS), set(_DECLARED), dict(registry._ENTRIES)
    forget = ("task_energy_j", "last_host")
    for name in forget:
        METRICS.pop(name, None)
        _DECLARED.discard(name)
    registry._ENTRIES.pop("Patient", None)
    monkeypatch.delitem(sys.modules, "marked_policy", raising=False)
    yield made / "results"
    for known, kept in zip((METRICS, _DECLARED, registry._ENTRIES), before, strict=True):
        known.clear()
        known.update(kept)


def was_run(store: Path) -> bool:
    """Whether the policy has been imported."""
    return (store.parent / "marker").exists()


def answered(words: list[str], answer: str, monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    """Return the status of a command on a terminal where this is answered, and what it asked there."""
    ours, theirs = os.openpty()
    with open(theirs, closefd=False) as read, open(theirs, "w", closefd=False) as written:
        monkeypatch.setattr(sys, "stdin", read)
        monkeypatch.setattr(sys, "stderr", written)
        os.write(ours, f"{answer}\n".encode())
        status = main(words)
        written.flush()
    os.close(theirs)
    asked = ""
    with contextlib.suppress(OSError):  # the other end is closed
        while chunk := os.read(ours, 10_000):
            asked += chunk.decode()
    os.close(ours)
    return status, asked


@pytest.fixture
def own_study(store: Path) -> Path:
    """The study's file, to a process that has never seen the policy."""
    return store.parent / "marked.toml"


def commands_of(study: Path, store: Path, folder: Path) -> dict[str, list[str]]:
    """Return each command that reads a study file, by its name."""
    return {
        "check": ["study", "check", str(study), "--samples", "1"],
        "check without timing": ["study", "check", str(study), "--samples", "0"],
        "run": ["study", "run", str(study), "--store", str(folder / "new"), "--quiet"],
        "reproduce": [
            *("reproduce", str(study), "--store", str(folder / "new"), "-o", str(folder / "r.html"), "--quiet")
        ],
        "claims": ["study", "claims", str(store), "--study", str(study), "--quiet"],
        "report": ["study", "report", str(store), "--study", str(study), "-o", str(folder / "r.html"), "--quiet"],
    }


@pytest.mark.parametrize("command", ["check", "check without timing", "run", "reproduce", "claims", "report"])
def test_the_files_of_a_study_are_not_run_unasked(
    own_study: Path, store: Path, tmp_path: Path, capsys: Any, command: str
):
    """As the programs that it names: one line that names the file, exit 2, nothing written; --trust runs them."""
    words = commands_of(own_study, store, tmp_path)[command]
    assert main(words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "marked_policy.py" in line
    assert "--trust" in line
    assert not was_run(store)
    assert not list(tmp_path.iterdir())
    assert main([*words, "--trust"]) == 0
    assert was_run(store)


def test_in_python_a_study_with_files_needs_trust(own_study: Path, store: Path):
    """From a file, from a text, and by its name; a study without such files needs none."""
    text = own_study.read_text()
    for read in (
        lambda: Study.from_file(own_study),
        lambda: Study.from_text(text, own_study),
        lambda: Study.find(str(own_study)),
    ):
        with pytest.raises(NotTrusted, match=r"marked_policy\.py"):
            read()
    assert not was_run(store)
    without = text.replace('policies = ["marked_policy.py"]\n', "")
    named = without.replace('id = "Patient"', 'id = "marked_policy.py"')
    with pytest.raises(NotTrusted, match=r"marked_policy\.py"):
        Study.from_text(named, own_study)
    assert not was_run(store)
    assert Study.from_text(text, own_study, trust=True).with_replicates(2).is_imported
    assert was_run(store)


@pytest.mark.parametrize(("answer", "status"), [("n", 2), ("y", 0)])
def test_on_a_terminal_a_study_check_asks(
    own_study: Path, store: Path, monkeypatch: pytest.MonkeyPatch, answer: str, status: int
):
    """Only a yes runs the file."""
    assert answered(["study", "check", str(own_study), "--samples", "0"], answer, monkeypatch)[0] == status
    assert was_run(store) == (answer == "y")


def test_reading_a_store_runs_none_of_its_files(store: Path, tmp_path: Path, capsys: Any):
    """Labels, run ids, units and bounds are known; what only the policy computes is left out, and the claims."""
    assert main(["study", "claims", str(store)]) == 2
    assert "marked_claims.py" in capsys.readouterr().err.splitlines()[-1]
    assert not was_run(store)
    page = tmp_path / "r.html"
    assert main(["study", "report", str(store), "-o", str(page)]) == 0
    printed = capsys.readouterr()
    assert "3 of 3 runs" in printed.out
    assert printed.err.count("warning: metric task_energy_j, its claims: left out") == 1
    assert "--trust runs it" in printed.err
    text = page.read_text()
    assert "Patient(max_replicas=3)" in text
    assert "Last host" in text
    assert "metric task_energy_j, its claims: left out, because marked_policy.py, marked_claims.py" in text
    assert "by hand" not in text
    assert "Makespan above bound" in text
    assert "<h3>Task energy" not in text
    rows = Store.open(store).rows(Store.open(store).study("marked"))
    assert set(rows["status"]) == {"finished"}
    assert not was_run(store)


def test_what_was_not_imported_is_the_same_study(store: Path):
    """Run ids, labels, parameters and traits are those of the study as it was read at first."""
    kept = Store.open(store).study()
    assert not was_run(store)
    own = Study.from_file(store.parent / "marked.toml", trust=True)
    assert was_run(store)
    assert [run.run_id for run in kept.scenarios()] == [run.run_id for run in own.scenarios()]
    assert kept.schedulers == own.schedulers
    assert kept.metrics == own.metrics
    assert kept.with_replicates(2).n_runs == 6
    assert not kept.with_replicates(2).is_imported


def test_trust_runs_them(store: Path):
    """The metric that the policy computes from rows is then among the results."""
    results = read_results(Store.open(store, trust=True))
    assert was_run(store)
    assert results.withheld == ""
    rows = results.finished
    assert rows["task_energy_j"].tolist() == (rows["energy_j"] / 4).tolist()


def test_a_rerun_asks(store: Path, capsys: Any):
    """One line and exit 2 without an answer; the same numbers with --trust."""
    run_id = Store.open(store).rows()["run_id"][0]
    assert main(["study", "rerun", str(store), run_id]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "To repeat a run runs Python that the store holds" in line
    assert "marked_policy.py" in line
    assert "--trust" in line
    assert not was_run(store)
    assert main(["study", "rerun", str(store), run_id, "--trust"]) == 0
    assert was_run(store)


@pytest.fixture
def hiding(store: Path, tmp_path: Path) -> Path:
    """A copy of the store that does not say what the study's policies bring."""
    copy = shutil.copytree(store, tmp_path / "results")
    file = copy / "studies" / "marked.json"
    content = json.loads(file.read_text())
    content["own"] = None
    file.write_text(json.dumps(content))
    return copy


def test_a_study_that_hides_what_its_policies_bring_needs_trust(store: Path, hiding: Path):
    """The rows are read all the same."""
    with pytest.raises(NotTrusted, match=r"marked_policy\.py"):
        read_results(str(hiding))
    assert main(["study", "claims", str(hiding), "--quiet"]) == 2
    assert not was_run(store)
    assert len(Store.open(hiding).rows()) == 3
    assert main(["study", "claims", str(hiding), "--quiet", "--trust"]) == 0


@pytest.mark.parametrize(("answer", "status"), [("n", 2), ("y", 0)])
def test_on_a_terminal_it_asks(store: Path, hiding: Path, monkeypatch: pytest.MonkeyPatch, answer: str, status: int):
    """What is asked names the file; only a yes runs it."""
    found, asked = answered(["study", "claims", str(hiding), "--quiet"], answer, monkeypatch)
    assert found == status
    assert "marked_policy.py" in asked
    assert "Run it? [y/N]" in asked
    assert was_run(store) == (answer == "y")


def test_a_kept_study_is_not_run_unasked(store: Path, tmp_path: Path):
    """Nor are its missing runs done, nor one again."""
    kept = Store.open(store)
    with pytest.raises(NotTrusted):
        run_campaign(kept.study(), Store.create(tmp_path / "new"))
    with pytest.raises(NotTrusted):
        rerun(kept, kept.rows()["run_id"][0])
    assert not was_run(store)


def test_another_file_in_a_policys_place_is_never_run(store: Path, tmp_path: Path):
    """A file is run only if it has the content that its study had."""
    copy = shutil.copytree(store, tmp_path / "results")
    (policy,) = (copy / "inputs").glob("*/marked_policy.py")
    policy.write_text(policy.read_text() + "# another\n")
    trusted = Store.open(copy, trust=True)
    run_id = trusted.rows()["run_id"][0]
    with pytest.raises(InputError, match=r"marked_policy\.py"):
        rerun(trusted, run_id)
    assert main(["study", "claims", str(copy), "--trust"]) == 2
    assert not was_run(store)


def test_another_file_in_the_place_of_its_claims_is_never_run(store: Path, tmp_path: Path, capsys: Any):
    """With trust, the file of claims that the study had is run; no other, as no other policy is."""
    copy = shutil.copytree(store, tmp_path / "results")
    assert main(["study", "claims", str(copy), "--trust"]) == 0
    assert "reproduced" in capsys.readouterr().out
    (claims,) = (copy / "inputs").glob("*/marked_claims.py")
    claims.write_text(f"{claims.read_text()}\nraise SystemExit(0)\n")
    assert main(["study", "claims", str(copy), "--trust"]) == 2
    assert "marked_claims.py: is damaged" in capsys.readouterr().err


def test_a_store_names_no_claims_of_another_place(store: Path, tmp_path: Path):
    """A forged study gets its claims from the store alone, or from gridsched."""
    copy = shutil.copytree(store, tmp_path / "results")
    file = copy / "studies" / "marked.json"
    own = tmp_path / "own.py"
    own.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nCLAIMS = []\n")
    file.write_text(file.read_text().replace("marked_claims.py", str(own)))
    for words in ([], ["--trust"]):
        assert main(["study", "claims", str(copy), *words]) == 2
    assert not (tmp_path / "ran").exists()


def test_policies_of_a_rerun_are_imported_in_the_studys_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """One may import those before it; what their digests are decides nothing."""
    monkeypatch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))
    first = "LIMIT = 2\n"
    second = (
        "from earlier_policy import LIMIT\nfrom gridsched.schedulers.bag.baselines import WQR\n"
        "class Later(WQR):\n    '''Work queue.'''\n    limit = LIMIT\n"
    )
    while hashlib.sha256(first.encode()).digest() < hashlib.sha256(second.encode()).digest():
        first += "#"
    (tmp_path / "earlier_policy.py").write_text(first)
    (tmp_path / "later_policy.py").write_text(second)
    text = (
        STUDY.partition("metrics")[0]
        .replace('claims = "marked_claims.py"\n', "")
        .replace("Patient", "Later")
        .replace('"marked_policy.py"', '"earlier_policy.py", "later_policy.py"')
    )
    sections = STUDY[STUDY.index("platform =") : STUDY.index("[[figures]]")]
    (tmp_path / "two.toml").write_text(text + sections)
    store = tmp_path / "store"
    command = ["study", "run", tmp_path / "two.toml", "--store", store, "--quiet", "--workers", 1, "--trust"]
    assert main([str(word) for word in command]) == 0
    run_id = next(iter(Store.open(store).stored()))
    assert rerun(Store.open(store, trust=True), run_id).is_identical
