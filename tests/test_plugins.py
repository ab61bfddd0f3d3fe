"""Plugins come by entry points; what they add is listed unloaded, and one that fails harms no other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

WHOLE = """
from gridsched.plugins import Command, JobFormat, Plugin, SchedulerEntry, WorkloadKind
plugin = Plugin(
    "whole",
    schedulers=(SchedulerEntry("foreign", "whole_parts:Foreign", ("bag",)),),
    workloads=(WorkloadKind("foreign_bag", "whole_parts:Keys", "whole_parts:made"),),
    formats=(JobFormat("foreign_log", (".foreign",), "whole_parts:read"),),
    figures=("whole_figures",),
    studies="whole",
    commands=(Command("foreign_command", "whole_parts", "What a stranger adds."),),
)
"""
FIGURES = """
raise RuntimeError("listing imports no figures")
@register_figure("foreign_figure", "run", "A stranger's.")
def draw(trace): ...
"""
STUDY = """
name = "foreign_study"
title = "A study of a plugin"
source = "nowhere"
"""
LISTED = """
import json, sys
from gridsched.policy.registry import entries
from gridsched.runs.figure_kinds import figure_kinds
from gridsched.runs.study_document import shipped_study_file
from gridsched.workloads.generators import GENERATORS
from gridsched.workloads.traces.formats import format_of
from gridsched.cli.app import app
from typer.main import get_command
listed = {
    "scheduler": "foreign" in [each.id for each in entries()],
    "workload": "foreign_bag" in GENERATORS,
    "format": format_of("a.foreign.gz"),
    "figure": "foreign_figure" in figure_kinds("run"),
    "study": shipped_study_file("foreign_study").name,
    "command": "foreign_command" in get_command(app).list_commands(None),
    "imported": sorted(name for name in sys.modules if name.startswith(("whole_", "gridsched.systems.")))
}
print(json.dumps(listed))
"""


def install(folder: Path, name: str, text: str, **others: str) -> None:
    """Write a package of one module, further files of it, and what pip would write beside them."""
    (folder / f"{name}.py").write_text(text)
    for other, content in others.items():
        (folder / other.replace("__", ".")).write_text(content)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[gridsched.plugins]\n{name} = {name}:plugin\n")


def python(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python with the packages of a folder installed."""
    paths = os.pathsep.join([str(folder), str(ROOT)])
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True
    )


def test_what_a_plugin_adds_is_listed_and_not_imported(tmp_path: Path):
    """Of a plugin its one module is imported; of gridsched's systems those that declare them."""
    install(tmp_path, "whole", WHOLE, whole_figures__py=FIGURES, foreign_study__toml=STUDY)
    done = python(tmp_path, "-W", "error", "-c", LISTED)
    assert done.returncode == 0, done.stderr
    listed = json.loads(done.stdout)
    systems = sorted(path.parent.name for path in (ROOT / "gridsched" / "systems").glob("*/__init__.py"))
    assert listed.pop("imported") == [f"gridsched.systems.{name}" for name in systems]
    assert listed == {
        "scheduler": True,
        "workload": True,
        "format": "foreign_log",
        "figure": True,
        "study": "foreign_study.toml",
        "command": True,
    }


def test_claims_lie_beside_a_plugins_study(tmp_path: Path):
    """A study names a shipped one for its claims; they are run only when they are asked for."""
    study = 'name = "foreign_study"\nextends = "tiny"\nclaims = "foreign_study"\n'
    claims = """
from gridsched.claims import Claim, Ground, mean
ours, ground = mean("energy_j", "lecsa"), Ground("before", "made up")
CLAIMS = [Claim("own", kind="shape", text="", source="", ours=ours, tolerance=(0, 1), ground=ground)]
"""
    install(tmp_path, "whole", WHOLE, foreign_study__toml=study, foreign_study__py=claims)
    code = "from gridsched.runs.study import Study\nprint(*(each.id for each in Study.shipped('foreign_study').claims))"
    done = python(tmp_path, "-c", code)
    assert done.stdout.split() == ["own"], done.stderr


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import no_such_module", "no_such_module"),
        ("1 / 0", "ZeroDivisionError"),
        ("raise SystemExit(3)", "SystemExit"),
        ("plugin = 7", "int"),
        ("from gridsched.plugins import Plugin\nplugin = Plugin('whole')", "'whole'"),
        ("from gridsched.plugins import Plugin\nplugin = Plugin('x', schedulers=(1,))", "AttributeError"),
    ],
)
def test_a_plugin_that_fails_is_one_line_and_harms_no_other(tmp_path: Path, text: str, reason: str):
    """Whatever its module raises or is; the other plugin's scheduler is found all the same."""
    install(tmp_path, "whole", WHOLE)
    install(tmp_path, "x_broken", text)
    (tmp_path / "whole_parts.py").write_text("from gridsched.schedulers.bag.baselines import WorkQueue as Foreign")
    done = python(tmp_path, "-m", "gridsched", "schedulers", "foreign")
    assert done.returncode == 0, done.stderr
    assert "foreign" in done.stdout
    (line,) = done.stderr.splitlines()
    assert reason in line
    assert "x" in line


@pytest.mark.systems("utility")
def test_of_two_of_one_name_the_first_stays(tmp_path: Path):
    """The core's before a system's, and that before a plugin's: each is reported in a line."""
    text = """
from gridsched.plugins import Plugin, SchedulerEntry
plugin = Plugin("second", schedulers=(SchedulerEntry("mct", "m:A"), SchedulerEntry("max_util", "m:B")))
"""
    install(tmp_path, "second", text)
    code = "from gridsched.policy.registry import entries\nprint([e.target for e in entries() if e.target[:2] == 'm:'])"
    done = python(tmp_path, "-c", code)
    assert done.stdout.split() == ["[]"], done.stderr
    said = [line for line in done.stderr.splitlines() if "PluginWarning" in line]
    assert [name in line for name, line in zip(("'mct'", "'max_util'"), said, strict=True)] == [True, True]


def test_a_scheduler_that_cannot_be_imported_is_left_out_of_the_list(tmp_path: Path):
    """The others are listed; who names it gets an error."""
    install(tmp_path, "whole", WHOLE, whole_parts__py="1 / 0")
    done = python(tmp_path, "-m", "gridsched", "schedulers")
    assert done.returncode == 0, done.stderr
    assert "lecsa" in done.stdout
    (line,) = done.stderr.splitlines()
    assert "whole_parts:Foreign" in line
    done = python(tmp_path, "-m", "gridsched", "schedulers", "foreign")
    assert done.returncode == 2
    assert "whole_parts:Foreign" in done.stderr


@pytest.mark.systems("utility")
def test_known_ids_ask_no_foreign_package(tmp_path: Path):
    """A plugin is not even looked for where a scheduler of gridsched's own is named."""
    install(tmp_path, "whole", "raise RuntimeError('asked for nothing')")
    code = "from gridsched.policy.registry import find\nprint(find('lecsa').id, find('max_util').id)"
    done = python(tmp_path, "-W", "error", "-c", code)
    assert done.stdout.split() == ["lecsa", "max_util"], done.stderr
