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
        ("from gridsched.plugins import Plugin\nplugin = Plugin('x', schedulers=(1,))", "SchedulerEntry"),
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


BROKEN = """
from itertools import count, repeat
from gridsched.plugins import Command, JobFormat, Plugin, SchedulerEntry, Variant, WorkloadKind


class Endless(tuple):
    def __iter__(self):
        return repeat(SchedulerEntry("again", "m:A"))


plugin = Plugin("broken", **{fields})
"""
GOOD = 'SchedulerEntry("foreign", "whole_parts:Foreign", ("bag",))'


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (f'{{"schedulers": (SchedulerEntry(7, "m:A"), {GOOD})}}', ["id is a int"]),
        (f'{{"schedulers": (SchedulerEntry("a,b", "m:A"), {GOOD})}}', ["'a,b'"]),
        (f'{{"schedulers": (SchedulerEntry("a", "no_colon"), {GOOD})}}', ["'no_colon'"]),
        (f'{{"schedulers": (SchedulerEntry("a", "m:A", None), {GOOD})}}', ["accepts", "NoneType"]),
        (f'{{"schedulers": (SchedulerEntry("a", "m:A", "bag"), {GOOD})}}', ["accepts", "str"]),
        (f'{{"schedulers": (SchedulerEntry("a", "m:A", source=3), {GOOD})}}', ["source"]),
        (f'{{"schedulers": (SchedulerEntry("a", "whole_parts:NUMBER"), {GOOD})}}', ["no class derived"]),
        (f'{{"schedulers": (SchedulerEntry("a", "whole_parts:Misshapen"), {GOOD})}}', ["'a'"]),
        (f'{{"schedulers": (SchedulerEntry("a", "exits:A"), {GOOD})}}', ["exits:A"]),
        (f'{{"schedulers": ({GOOD},), "formats": 3}}', ["formats is a int"]),
        (f'{{"schedulers": ({GOOD},), "metrics": "module"}}', ["metrics is a str"]),
        (f'{{"schedulers": ({GOOD},), "studies": 3}}', ["studies is a int"]),
        (f'{{"schedulers": ({GOOD},), "variants": count()}}', ["variants is a count"]),
        (f'{{"schedulers": ({GOOD},), "commands": Endless((1,))}}', ["commands", "1,000"]),
        (f'{{"schedulers": ({GOOD},), "kernels": tuple(map(str, range(2000)))}}', ["kernels", "1,000"]),
    ],
)
def test_an_entry_that_is_none_is_one_line_and_the_rest_works(tmp_path: Path, fields: str, words: list[str]):
    """The core's schedulers are listed, and the plugin's good one."""
    parts = """
from gridsched import Scheduler
from gridsched.schedulers.bag.baselines import WorkQueue as Foreign
NUMBER = 7
class Unprintable:
    def __repr__(self):
        raise ValueError("it has no text")
class Misshapen(Scheduler):
    def __init__(self, size=Unprintable()):
        self.size = size
    def schedule(self, state):
        return ()
"""
    install(tmp_path, "broken", BROKEN.format(fields=fields), whole_parts__py=parts, exits__py="raise SystemExit(3)")
    done = python(tmp_path, "-m", "gridsched", "schedulers")
    assert done.returncode == 0, done.stderr
    listed = done.stdout.split()
    assert {"foreign", "lecsa"} <= set(listed)
    (line,) = done.stderr.splitlines()
    assert "internal error" not in line
    assert [word for word in words if word not in line] == []


@pytest.mark.parametrize("text", ["[gridsched.plugins]\nno equals sign\n", "[gridsched.plugins\nx = y\n", "\xff\xfe"])
def test_a_package_whose_entry_points_cannot_be_read(tmp_path: Path, text: str):
    """Whatever lies there: the plugin of another package works."""
    install(tmp_path, "whole", WHOLE, whole_parts__py="from gridsched.schedulers.bag.baselines import WQR as Foreign")
    install(tmp_path, "malformed", "plugin = 1")
    content = text.encode("latin1") + b"gridsched.plugins"
    (tmp_path / "malformed-1.0.dist-info" / "entry_points.txt").write_bytes(content)
    done = python(tmp_path, "-m", "gridsched", "schedulers")
    assert done.returncode == 0, done.stderr
    assert "foreign" in done.stdout.split()
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("ending", [".csv", ".toml", ".gz", ".xml", "", "csv", ".", ".LOG", ".swf", ".jobs.csv"])
def test_a_format_takes_no_ending_of_the_core(tmp_path: Path, ending: str):
    """A line names it; bags and logs are read as ever, and so are files of its other ending."""
    text = f"""
from gridsched.plugins import JobFormat, Plugin
plugin = Plugin("greedy", formats=(JobFormat("greedy_log", ({ending!r}, ".greedy"), "m:read"),))
"""
    install(tmp_path, "greedy", text)
    code = (
        "from gridsched.workloads.traces.formats import FORMATS, format_of\n"
        "list(FORMATS)\n"
        "print([format_of(f'a{end}') for end in ('.csv', '.toml', '.xml', '.swf', '.jobs.csv', '.greedy', '')])"
    )
    done = python(tmp_path, "-c", code)
    assert done.stdout.strip() == "[None, None, None, 'swf', 'table', 'greedy_log', None]", done.stderr
    assert repr(ending) in done.stderr
    bag = [f"--platform={ROOT}/platforms/ex_a.xml", f"--workload={ROOT}/examples/ex_a.csv", "--driver=reference"]
    done = python(tmp_path, "-m", "gridsched", "run", *bag, "--scheduler=wq")
    assert done.returncode == 0, done.stderr


def test_modules_that_fail_harm_no_others_of_their_plugin(tmp_path: Path):
    """One of metrics, one of figures, one of loops, one of a command: what the others add is there."""
    text = """
from gridsched.plugins import Command, Plugin
plugin = Plugin("mixed", metrics=("missing_metrics", "good_metrics"), figures=("missing_figures", "good_figures"),
                kernels=("missing_loops", "good_metrics"), commands=(Command("lost", "missing_command", "Lost."),))
"""
    metric = (
        "from gridsched import Metric, register_metric\nregister_metric(Metric('mine', '', 'x', lambda facts: 1.0))"
    )
    figure = "@register_figure('foreign_figure', 'run', 'A figure.')\ndef draw(trace): ...\n"
    install(tmp_path, "mixed", text, good_metrics__py=metric, good_figures__py=figure)
    code = """
from gridsched.metrics import METRICS
from gridsched.runs.figure_kinds import figure_kinds
from gridsched.schedulers.kernels import groups
print("mine" in list(METRICS), "foreign_figure" in figure_kinds("run"), "good_metrics" in groups())
"""
    done = python(tmp_path, "-c", code)
    assert done.stdout.split() == ["True", "True", "False"], done.stderr
    said = [line for line in done.stderr.splitlines() if "PluginWarning" in line]
    assert len(said) == 4
    done = python(tmp_path, "-m", "gridsched", "lost")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "missing_command" in line
    assert "internal error" not in line


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
