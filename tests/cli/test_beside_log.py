"""The log's row of `gridsched beside`: by hand, from the log alone, with grams and money, and what is left out."""

from __future__ import annotations

import pytest
from cli_cases import host_xml, platform_text

COLUMNS = "JobIDRaw|User|Partition|Submit|Start|End|ElapsedRaw|TimelimitRaw|NNodes|AllocCPUS|AllocTRES|State|NodeList"
CONF = """NodeName=a[1-2] CPUs=4
PartitionName=a Nodes=a[1-2] Default=YES MaxTime=INFINITE State=UP
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
"""
#: Power of a node that idles, and what a busy core of its four adds [W].
IDLE_W, CORE_W = 95.0, (190.738 - 95.0) / 4
NODES = ("a1", "a1", "a2", "a2")


def moment(seconds: int) -> str:
    """Return the date of a second of the log."""
    return f"2026-03-02T{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def row(job: int, start: int, run: int, cores: int, nodes: str, *, submit: int = 0, n: int = 1, tres: str = "") -> str:
    """Return a job of an hour at most."""
    times = "|".join(map(moment, (submit, start, start + run)))
    return f"{job}|u|a|{times}|{run}|60|{n}|{cores}|{tres}|COMPLETED|{nodes}"


def swapped(nodes: tuple[str, ...] = NODES) -> list[str]:
    """Jobs 1 and 3 first, which FCFS and EASY place on one node: each has four cores for 600 s."""
    return [row(k + 1, (0, 600)[k % 2], 600, 4, node) for k, node in enumerate(nodes)]


#: What these draw: two nodes for 1,200 s, and four cores four times for 600 s.
SWAPPED_J = 2 * IDLE_W * 1200 + 4 * 4 * CORE_W * 600


@pytest.fixture
def beside(gridsched, write):
    """Call the command for lines of a log, and return the log's row, those of the schedulers, and stderr."""

    def call(lines, *options, conf=CONF, columns=COLUMNS, schedulers="easy_backfilling"):
        log, machine = write("log.sacct", "\n".join([columns, *lines, ""])), write("slurm.conf", conf)
        where = ("--workload", log, "--slurm-conf", machine, "--driver", "reference", "--schedulers", schedulers)
        outcome = gridsched("beside", *where, *options, "--json")
        assert outcome.status == 0, outcome.err
        first, *others = outcome.json["schedules"]
        return first, others, outcome.err

    return call


@pytest.mark.parametrize("nodes", [NODES, ("",) * 4, ("b7",) * 4, ("a1", "", "", "a2")], ids=str)
@pytest.mark.parametrize("schedulers", ["fcfs,easy_backfilling", "easy_backfilling,fcfs"])
def test_energy_does_not_depend_on_who_is_listed(beside, nodes, schedulers):
    """Jobs without known nodes are on free ones, and a line counts them; never on those of a scheduler."""
    log, _, said = beside(swapped(nodes), schedulers=schedulers)
    assert log["energy_j"] == pytest.approx(SWAPPED_J)
    assert log["utilisation"] == pytest.approx(1.0)
    count = sum(name not in ("a1", "a2") for name in nodes)
    assert (f"{count} jobs" in said) == (count > 0)


@pytest.mark.parametrize(("on", "named"), [("a[1-2]", "a1.example"), ("a[1-2].example", "a1"), ("a[1-2].x", "a1.x")])
def test_names_may_have_a_domain(beside, on, named):
    """Either the log or the machine has it; both nodes draw the same, so the other node shows by its name."""
    conf = CONF.replace("a[1-2]", on)
    log, _, said = beside([row(1, 0, 600, 4, named)], conf=conf)
    assert "names no nodes" not in said
    assert "does not have" not in said
    assert log["energy_j"] == pytest.approx(2 * IDLE_W * 600 + 4 * CORE_W * 600)
    _, _, said = beside([row(1, 0, 600, 4, "a1.y")], conf=CONF.replace("a[1-2]", "a[1-2].x"))
    assert "'a1.y'" in said


def test_a_rejected_job_stays_in_the_log(beside):
    """Job 3 waits for one that failed, or another: no run starts it, and the machine did."""
    lines = [
        row(1, 0, 600, 4, "a1").replace("COMPLETED", "FAILED") + "|sbatch a",
        row(2, 20, 600, 4, "a2", submit=10) + "|sbatch a",
        row(3, 600, 600, 4, "a1", submit=10) + "|sbatch --dependency=afterok:1 b",
    ]
    log, others, said = beside(lines, columns=f"{COLUMNS}|SubmitLine", schedulers="easy_backfilling,fcfs")
    assert log["makespan_s"] == 1200.0
    assert log["energy_j"] == pytest.approx(2 * IDLE_W * 1200 + 3 * 4 * CORE_W * 600)
    assert log["mean_wait_s"] == pytest.approx(600 / 3)
    for each in others:
        assert (each["mean_wait_s"], each["median_wait_s"], each["longest_wait_s"]) == (0.0, 0.0, 0.0)
        assert f"{each['schedule']}: 1 job does not start" in said


@pytest.mark.parametrize(
    "outage", [("--failures", "mtbf=400,mttr=50", "--seed", "3"), ("--maintenance", "a1=100:900")], ids=str
)
def test_what_happens_in_runs_is_not_in_the_log(beside, outage):
    """Its nodes failed by no draw, and its jobs ran once."""
    log, (easy,), said = beside(swapped(("a1", "a1", "a2", "a2")), *outage)
    assert easy["makespan_s"] > 1200.0
    assert log["energy_j"] == pytest.approx(SWAPPED_J)
    assert log["utilisation"] == pytest.approx(1.0)
    assert "nodes are on all the time" in said


@pytest.mark.parametrize(
    "lines",
    [
        [row(1, 0, 600, 3, "a1"), row(2, 100, 600, 2, "a1")],
        [row(1, 0, 600, 4, ""), row(2, 0, 600, 4, "a1"), row(3, 0, 600, 4, "a2")],
    ],
    ids=["named", "no room"],
)
def test_nothing_is_clipped(beside, lines):
    """More cores in use than there are: energy and utilization are left out, and a line names the job."""
    log, _, said = beside(lines)
    assert log["energy_j"] is log["utilisation"] is None
    assert log["mean_wait_s"] is not None
    assert "left out: job" in said


def test_nodes_of_different_power(beside, write):
    """If it matters for the joules which nodes jobs had, and the log does not name them, there are none."""
    hosts = host_xml("a1", watts="10:10:50", extra=' core="4"') + host_xml("a2", watts="10:10:90", extra=' core="4"')
    machine = write("p.xml", platform_text(f'<zone id="z" routing="Full">{hosts}</zone>'))
    log, _, said = beside([row(1, 0, 600, 4, "")], "--platform", machine)
    assert log["energy_j"] is None
    assert log["utilisation"] == pytest.approx(0.5)
    assert "differ in power" in said
    log, _, _ = beside([row(1, 0, 600, 2, "a2")], "--platform", machine)
    assert log["energy_j"] == pytest.approx(600 * (10 + 50))


def test_parts_that_no_node_has_room_for(beside):
    """Two cores are free on each node, and a job of four began: joules are the same wherever its cores are."""
    lines = [row(1, 0, 600, 3, "a1"), row(2, 0, 600, 3, "a2"), row(3, 100, 100, 2, "")]
    log, _, _ = beside(lines)
    assert log["energy_j"] == pytest.approx(2 * IDLE_W * 600 + CORE_W * (6 * 600 + 2 * 100))


def test_cores_of_several_nodes(beside):
    """Five cores on two nodes, three on the one and two on the other, where a job of two has the rest."""
    lines = [row(1, 0, 600, 5, "a[1-2]", n=2), row(2, 0, 600, 2, "a1"), row(3, 300, 300, 1, "a2")]
    log, _, _ = beside(lines)
    assert log["energy_j"] == pytest.approx(2 * IDLE_W * 600 + CORE_W * (7 * 600 + 300))


@pytest.mark.parametrize(
    ("first", "second", "early", "wait_s", "makespan_s"),
    [
        ((100, 60, 100), (110, 120, 50), "job 1 in line 2", 5.0, 110.0),
        ((60, 60, 100), (110, 80, 50), "job 2 in line 3", 0.0, 100.0),
    ],
)
def test_a_start_before_the_submission(beside, first, second, early, wait_s, makespan_s):
    """The job counts as submitted then, and a line names job and line; of each job submission, start and length."""
    jobs = ((1, 3, first), (2, 1, second))
    lines = [row(job, start, run, cores, "a1", submit=submit) for job, cores, (submit, start, run) in jobs]
    log, _, said = beside(lines)
    assert early in said
    assert log["mean_wait_s"] == pytest.approx(wait_s)
    assert log["makespan_s"] == makespan_s


def test_grams_and_money(beside):
    """Grams, costs and profit of the log and of each scheduler, as `run` counts them."""
    cost, money = 1e-6, ("--price", "10", "--energy-cost", "1e-6", "--pue", "1.5")
    log, (fcfs,), _ = beside(swapped(), "--carbon", "360", "--carbon-pue", "1.2", *money, schedulers="fcfs")
    for each in (log, fcfs):
        assert each["energy_j"] == pytest.approx(SWAPPED_J)
        assert each["carbon_g"] == pytest.approx(SWAPPED_J * 1e-4 * 1.2)
        assert each["energy_cost"] == pytest.approx(SWAPPED_J * cost * 1.5)
        assert each["profit"] == pytest.approx(10 - SWAPPED_J * cost * 1.5)


def test_grams_and_money_as_in_run(gridsched, write, beside):
    """The numbers of a scheduler are those of `run`; the table has their columns."""
    money = ("--carbon", "360", "--price", "10", "--energy-cost", "1e-6")
    _, (fcfs,), _ = beside(swapped(), *money, schedulers="fcfs")
    where = ("--workload", write("log.sacct", "\n".join([COLUMNS, *swapped(), ""])), "--slurm-conf",
             write("slurm.conf", CONF), "--driver", "reference")  # fmt: skip
    alone = gridsched("run", *where, *money, "--scheduler", "fcfs", "--json").json
    for key in ("carbon_g", "profit", "profit_rate"):
        assert fcfs[key] == pytest.approx(alone[key])
    table = gridsched("beside", *where, *money, "--schedulers", "fcfs").out
    assert "carbon" in table
    assert "profit" in table


def test_units_that_draw(beside, write):
    """Four GPUs of 20 W, 100 W with a job: two jobs have two of them each for 600 s of 1,200 s."""
    units = '<prop id="resources" value="gpu:4"/><prop id="unit_power" value="gpu:20:100"/>'
    hosts = "".join(host_xml(name, watts="10:10:50", extra=' core="4"', properties=units) for name in ("a1", "a2"))
    machine = write("p.xml", platform_text(f'<zone id="z" routing="Full">{hosts}</zone>'))
    conf = CONF.replace("CPUs=4", "CPUs=4 Gres=gpu:4")
    lines = [row(k, start, 600, 2, "a1", tres="cpu=2,gres/gpu=2") for k, start in ((1, 0), (2, 600))]
    log, (fcfs,), _ = beside(lines, "--platform", machine, "--carbon", "360", conf=conf, schedulers="fcfs")
    idle_j = 2 * 4 * 20 * 1200
    assert log["energy_resources_j"] == pytest.approx(idle_j + 2 * 2 * 80 * 600)
    assert log["carbon_resources_g"] == pytest.approx(log["energy_resources_j"] * 1e-4)
    assert fcfs["energy_resources_j"] == pytest.approx(2 * 4 * 20 * 600 + 2 * 2 * 80 * 600)
