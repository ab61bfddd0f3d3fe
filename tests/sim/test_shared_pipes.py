"""Links of type FATPIPE under parallel tasks: what SimGrid's solvers give of them."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from gridsched import Scenario, make_tasks, run
from gridsched.cli.app import main
from gridsched.drivers.fair_shares import fair_rates
from gridsched.errors import InputError
from gridsched.model.job_profiles import ParallelWork

BARE = Path(__file__).parent / "bare_parallel_tasks.py"
HOSTS = "abcd"
#: Two jobs of two nodes each, on their way over one link of type FATPIPE; the second one's own link has a tenth.
WORK = ParallelWork(matrix=(0.0, 10_000.0, 0.0, 0.0))


def pipe_xml(folder: Path, config: str = "", policy: str = "FATPIPE") -> Path:
    """Write four hosts and a master, all of whose routes cross one link; the one from c to d a narrow link, too."""
    hosts = [f'<host id="{h}" speed="1Gf"><prop id="wattage_per_state" value="10:20:20"/></host>' for h in HOSTS]
    hosts.append('<host id="m" speed="1Gf"><prop id="role" value="master"/></host>')
    pairs = [(a, b) for k, a in enumerate(HOSTS) for b in HOSTS[k + 1 :]]
    routes = [
        f'<route src="{a}" dst="{b}"><link_ctn id="pipe"/>'
        f"{'<link_ctn id=' + chr(34) + 'narrow' + chr(34) + '/>' if (a, b) == ('c', 'd') else ''}</route>"
        for a, b in pairs
    ]
    path = folder / "pipe.xml"
    path.write_text(
        '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n<platform version="4.1">'
        f'{config}<zone id="z" routing="Full">{"".join(hosts)}'
        f'<link id="pipe" bandwidth="1000Bps" latency="0s" sharing_policy="{policy}"/>'
        f'<link id="narrow" bandwidth="100Bps" latency="0s"/>{"".join(routes)}</zone></platform>'
    )
    return path


def scenario(platform: Path, jobs: int = 2, **others) -> Scenario:
    """Return a run of such jobs, which start at once."""
    tasks = make_tasks([1.0] * jobs, width=2, requested_time_s=1e4, profile=[0] * jobs, profiles=[WORK])
    return Scenario(platform, tasks, "fcfs", timeout_s=60.0, **others)


def lines_of(result) -> list[str]:
    """Return the lines of a run about such links."""
    assert list(result.scenario.warnings) == result.provenance["warnings"]
    return [line for line in result.scenario.warnings if "FATPIPE" in line]


def test_the_sum_of_shrinking_steps():
    """The first task is offered what is left, ten times: 1, 0.9, ... 0.1 of the link, in sum 5.5 of it."""
    uses = [{"pipe": 10_000.0}, {"pipe": 10_000.0, "narrow": 10_000.0}]
    rates = fair_rates(uses, [inf, inf], {"pipe": 1000.0, "narrow": 100.0}, {"pipe"})
    assert rates == pytest.approx([0.55, 0.01], rel=1e-12)
    assert fair_rates(uses[:1], [inf], {"pipe": 1000.0}, {"pipe"}) == [0.1]


@pytest.mark.parametrize("driver", ["simgrid", "reference"])
def test_a_job_gets_more_than_the_link_has(tmp_path: Path, driver: str):
    """Alone 10 s; beside the slower one 10 / 5.5 s, which a line of the run reports with the option."""
    path = pipe_xml(tmp_path)
    alone = run(scenario(path, 1, driver=driver))
    assert alone.trace.finish_time_s.tolist() == pytest.approx([10.0], rel=1e-12)
    assert lines_of(alone) == []
    both = run(scenario(path, driver=driver))
    assert both.trace.finish_time_s.tolist() == pytest.approx([10 / 5.5, 100.0], rel=1e-12)
    (line,) = lines_of(both)
    assert "'pipe'" in line
    assert "--cfg host/solver:bmf" in line
    shared = run(scenario(pipe_xml(tmp_path, policy="SHARED"), driver=driver))
    assert shared.trace.finish_time_s.tolist() == pytest.approx([10_000 / 900, 100.0], rel=1e-9)
    assert lines_of(shared) == []


def test_the_other_solver_gives_what_the_link_has(tmp_path: Path):
    """10 s with it, by an option or by the platform file; the reference driver, which has no such one, refuses both."""
    option, path = "host/solver:bmf", pipe_xml(tmp_path)
    in_file = pipe_xml_with_solver(tmp_path)
    for asked in (scenario(path, cfg=(option,)), scenario(in_file)):
        result = run(asked)
        assert result.trace.finish_time_s.tolist() == pytest.approx([10.0, 100.0], rel=1e-9)
        assert lines_of(result) == []
        with pytest.raises(InputError, match=r"host/solver is bmf|--cfg"):
            run(replace(asked, driver="reference"))
    back = run(scenario(in_file, cfg=("host/solver:fairbottleneck",)))
    assert back.trace.finish_time_s.tolist() == pytest.approx([10 / 5.5, 100.0], rel=1e-12)
    assert len(lines_of(back)) == 1


def pipe_xml_with_solver(folder: Path) -> Path:
    """Write the platform into a folder of its own, with the solver among its options."""
    own = folder / "solver"
    own.mkdir()
    return pipe_xml(own, '<config><prop id="host/solver" value="bmf"/></config>')


@pytest.mark.parametrize(("option", "first_s"), [((), 10 / 5.5), (("--cfg=host/solver:bmf",), 10.0)])
def test_simgrid_alone_gives_the_same(tmp_path: Path, option: tuple[str, ...], first_s: float):
    """A program that uses only SimGrid."""
    plan = [[0.0, list(nodes), [0.0, 0.0], list(WORK.matrix)] for nodes in ("ab", "cd")]
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    command = [sys.executable, str(BARE), str(pipe_xml(tmp_path)), str(tmp_path / "plan.json"), *option]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    assert json.loads(said.splitlines()[0]) == pytest.approx([first_s, 100.0], rel=1e-9)


def test_commands_print_the_line_once(tmp_path: Path, capsys):
    """Also where several schedulers are compared."""
    (tmp_path / "p.toml").write_text('[[profile]]\nname = "send"\nmatrix = [0, 10000, 0, 0]\n')
    (tmp_path / "j.jobs.csv").write_text(
        "id,submit_time_s,run_time_s,nodes,requested_time_s,profile\n1,0,,2,2000,send\n2,0,,2,2000,send\n"
    )
    words = ["--platform", str(pipe_xml(tmp_path)), "--workload", str(tmp_path / "j.jobs.csv"), "--driver", "reference",
             "--profiles", str(tmp_path / "p.toml")]  # fmt: skip
    for command in (["run", "--scheduler", "fcfs"], ["compare", "--schedulers", "fcfs,easy_backfilling"]):
        assert main([*command, *words]) == 0
        assert capsys.readouterr().err.count("FATPIPE") == 1
