"""Numbers and texts at the ends of their ranges: one line or a run, and never an internal error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_cases import ROOT

from gridsched.campaign.row_table import are_groups, read_groups
from gridsched.errors import InputError

BEYOND = 2**63
LOGS = {
    "a.jobs.csv": "id,submit_time_s,run_time_s,nodes\n{id},0,5,4\n",
    "a.swf": "{id} 0 -1 5 4 -1 -1 4 9 -1 1\n",
    "a.sacct": "JobID|Submit|Start|ElapsedRaw|AllocNodes|State\n"
    "{id}|2026-03-02T08:00:00|2026-03-02T08:00:00|5|4|COMPLETED\n",
}


@pytest.mark.parametrize("name", LOGS)
@pytest.mark.parametrize("id", [BEYOND - 1, BEYOND, 10**18, 10**40], ids=["last", "64 bits", "19 digits", "41 digits"])
def test_ids_beyond_64_bits_are_names(gridsched, tmp_path: Path, name: str, id: int):
    """The job runs for its 5 s, and is called as the log calls it."""
    (tmp_path / name).write_text(LOGS[name].format(id=id))
    words = ["--workload", tmp_path / name, "--nodes", "4", "--driver", "reference", "--scheduler", "fcfs"]
    outcome = gridsched("run", *words, "--export", tmp_path / "out", "--json")
    assert outcome.json["makespan_s"] == 5.0, outcome.err
    assert str(id) in (tmp_path / "out" / "tasks.csv").read_text()


@pytest.mark.parametrize("name", ["a.jobs.csv", "bag.csv", "carbon.csv"])
def test_cells_of_headers_that_are_longer_than_any_name(refused, tmp_path: Path, name: str):
    (tmp_path / name).write_text(f"id,submit_time_s,run_time_s,nodes,{'h' * 200_000}\n1,0,1,1,2\n")
    platform = ["--platform", ROOT / "platforms" / "ex_a.xml"] if name != "a.jobs.csv" else ["--nodes", 4]
    bag = ROOT / "examples" / "ex_a.csv"
    words = (
        ["--workload", bag, "--carbon", tmp_path / name] if name == "carbon.csv" else ["--workload", tmp_path / name]
    )
    line = refused("run", *platform, *words, "--driver", "reference")
    assert name in line
    assert len(line) < 1100


@pytest.mark.systems("workflows")
def test_cells_of_headers_of_times(refused, tmp_path: Path):
    (tmp_path / "w.toml").write_text("kind='workflow'\ntimes_csv='t.csv'\nedges_csv='e.csv'\n")
    (tmp_path / "t.csv").write_text(f"id,h1,{'h' * 200_000}\na,1,2\n")
    (tmp_path / "e.csv").write_text("task,on,bytes\n")
    line = refused("run", "--platform", ROOT / "platforms" / "ex_a.xml", "--workload", tmp_path / "w.toml")
    assert "t.csv, line 1" in line


@pytest.mark.parametrize("number", ["9" * 400, str(BEYOND), "1e400", "-" + "9" * 400], ids=["400", "64", "inf", "-400"])
def test_forged_numbers_of_groups(number: str):
    """Whole numbers of hundreds of digits are none of a metric."""
    text = f'[{{"by": "user", "group": "a", "energy_j": {number}}}]'
    assert not are_groups(json.loads(text))
    with pytest.raises(InputError, match="groups of jobs"):
        read_groups(text)


RING = '[[profile]]\nname="x"\nflops=1000\npattern="ring"\nmessage_bytes=1e3\n'
JOB = "id,submit_time_s,run_time_s,nodes,requested_time_s,profile\n1,0,,3,1e6,x\n"


def closed_platform() -> str:
    hosts = "".join(f'<host id="h{k}" speed="100f"/>' for k in range(3))
    links = '<link id="l" bandwidth="0Bps" latency="0s"/><link id="m" bandwidth="1Bps" latency="0s"/>'
    routes = "".join(
        f'<route src="h{a}" dst="h{b}"><link_ctn id="{"l" if (a, b) == (1, 2) else "m"}"/></route>'
        for a, b in ((0, 1), (0, 2), (1, 2))
    )
    return (
        '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
        f'<platform version="4.1"><zone id="z" routing="Full">{hosts}{links}{routes}</zone></platform>'
    )


@pytest.mark.parametrize("driver", ["reference", "simgrid"])
def test_a_link_that_carries_nothing_is_named(gridsched, simgrid, tmp_path: Path, driver: str):
    """Both drivers name it and the hosts at the ends of the route; without the network the job runs its 10 s."""
    for name, text in {"p.xml": closed_platform(), "r.toml": RING, "j.jobs.csv": JOB}.items():
        (tmp_path / name).write_text(text)
    words = ["run", "--platform", tmp_path / "p.xml", "--workload", tmp_path / "j.jobs.csv", "--scheduler", "fcfs"]
    words += ["--profiles", tmp_path / "r.toml", "--power", "none", "--driver", driver]
    (line,) = gridsched(*words).problems
    assert "'l'" in line
    assert "bandwidth of 0" in line
    assert "internal error" not in line
    assert "Error:" not in line


@pytest.mark.parametrize("delay", ["1e300", "1e31", "1e30", "nan", "inf"])
def test_delays_without_end(gridsched, tmp_path: Path, delay: str):
    """One line, whether the delay is refused or asks for too many changes of the intensity."""
    (tmp_path / "c.csv").write_text("time_s,g_per_kwh\n0,100\n3600,900\n")
    words = ["--platform", ROOT / "platforms" / "ex_a.xml", "--workload", ROOT / "examples" / "ex_a.csv"]
    words += ["--driver", "reference", "--scheduler", "wait_for_green", "--set", "scheduler=wq"]
    words += ["--carbon", tmp_path / "c.csv", "--carbon-period-s", "7200"]
    outcome = gridsched("run", *words, "--set", f"max_delay_s={delay}")
    (line,) = outcome.problems
    assert outcome.status == 2
    assert len(line) < 300
