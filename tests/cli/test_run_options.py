"""The options of `run` that change what is simulated, each with numbers by hand."""

from __future__ import annotations

import signal

import pytest
from cli_cases import EX_A_TASKS, deployment_xml, host_xml, star_xml, zone_xml

pytestmark = pytest.mark.usefixtures("simgrid")


def numbers(gridsched, *words) -> dict:
    """Run and return the JSON."""
    outcome = gridsched("run", *words, "--json")
    assert (outcome.status, outcome.err) == (0, "")
    return outcome.json


@pytest.mark.parametrize("driver", ["simgrid", "reference"])
def test_pstate(gridsched, write, driver):
    """In P-state 1 (50 flop/s, 20 W) 1000 flop take 20 s and 400 J."""
    platform = write("p.xml", zone_xml(host_xml(speed="100f,50f", watts="4:50:50,2:20:20")))
    options = ["--platform", platform, "--workload", write("w.csv", "id,flops\n1,1000\n")]
    slow = numbers(gridsched, *options, "--pstate", 1, "--driver", driver)
    assert (slow["makespan_s"], slow["energy_j"]) == (20, pytest.approx(400, rel=1e-12))
    fast = numbers(gridsched, *options, "--pstate", 0, "--driver", driver)
    assert (fast["makespan_s"], fast["energy_j"]) == (10, pytest.approx(500, rel=1e-12))


def test_network(gridsched, write):
    """Input and result cross a link of 10 byte/s and 0.5 s: 1.5 s there, 1 s back."""
    options = [
        "--platform",
        write("p.xml", star_xml(hosts=1)),
        "--workload",
        write("w.csv", "id,flops,input_bytes,output_bytes\n1,100,10,5\n"),
    ]
    found = numbers(gridsched, *options)
    assert found["provenance"]["network"] == "platform"
    assert found["busy_time_s"] == pytest.approx(1.0, rel=1e-9)
    assert found["horizon_s"] == pytest.approx(1.5 + 1.0 + 1.0, rel=1e-9)
    # busy 1 s at 50 W, idle the rest at 4 W
    assert found["energy_j"] == pytest.approx(50 + 2.5 * 4, rel=1e-9)
    assert found["energy_model_j"] == pytest.approx(found["energy_j"], rel=1e-9)
    without = numbers(gridsched, *options, "--network", "none")
    assert (without["horizon_s"], without["provenance"]["network"]) == (1.0, "none")


def test_deployment(gridsched, write):
    """Only hosts with a worker compute, and only they count in the energy."""
    options = ["--platform", write("p.xml", star_xml(hosts=3)), "--workload", write("w.csv", EX_A_TASKS)]
    everyone = numbers(gridsched, *options)
    assert everyone["hosts_used"] == 3
    half = numbers(gridsched, *options, "--deployment", write("d.xml", deployment_xml("m", ["h2"])))
    assert half["hosts_used"] == 1
    assert half["makespan_s"] == pytest.approx(5250 / 100)
    assert half["energy_j"] == pytest.approx(52.5 * 50)
    outcome = gridsched(
        "validate", *options, "--deployment", write("d2.xml", deployment_xml("h1", ["h2", "h3"])), "--json"
    )
    assert outcome.status == 0
    roles = {row["host"]: row["role"] for row in outcome.json["hosts"]}
    assert roles["h2"] == roles["h3"] == "computing"
    assert roles["h1"] != "computing"


def test_input_files(gridsched, write, tmp_path):
    """A4: XSufferage keeps tasks beside their file (30 s), Sufferage does not (60 s)."""
    table = write(
        "t.csv", "name,speed,efficiency,idle_power_w,cluster\na1,100,2,4,A\na2,100,2,4,A\nb1,100,2,4,B\nb2,100,2,4,B\n"
    )
    platform = tmp_path / "p.xml"
    made = gridsched(
        "platform",
        "from-table",
        table,
        "--clusters",
        "cluster",
        "--cluster-bandwidth",
        "10Bps",
        "--cluster-latency",
        "0s",
        "-o",
        platform,
        "--quiet",
    )
    assert made.status == 0
    options = [
        "--platform",
        platform,
        "--workload",
        write("w.csv", "id,flops,input_files\n1,3000,\n2,3000,\n3,3000,f\n4,3000,f"),
        "--files",
        write("f.csv", "file,size_bytes,location\nf,1000,A\n"),
    ]
    outcome = gridsched("compare", *options, "--schedulers", "xsufferage,sufferage", "--json")
    assert (outcome.status, outcome.err) == (0, "")
    assert [row["makespan_s"] for row in outcome.json["results"]] == [30, 60]
    described = gridsched("workload", "describe", *options[3:], "--json").json
    assert described["input_files"] == 1


@pytest.mark.parametrize("driver", ["simgrid", "reference"])
def test_files_beside_messages(gridsched, write, driver):
    """The file comes from another cluster first; then 10 bytes are sent, and 3,000 flop computed at 100 flop/s."""
    options = [
        "--platform",
        write("p.xml", star_xml()),
        "--workload",
        write("w.csv", "id,flops,input_bytes,input_files\n1,3000,10,f\n"),
        "--files",
        write("f.csv", "file,size_bytes,location\nf,1000,h1\n"),
    ]
    found = numbers(gridsched, *options, "--driver", driver)
    without = numbers(gridsched, *options, "--driver", driver, "--network", "none")
    assert found["makespan_s"] == pytest.approx(without["makespan_s"] + 1.5)


@pytest.mark.parametrize("driver", ["simgrid", "reference"])
def test_mapping_interval(gridsched, ex_a, driver):
    """Asked every 20 s only, WQ starts the next tasks at 20 s instead of 10 s."""
    found = numbers(gridsched, *ex_a, "--mapping-interval-s", 20, "--driver", driver)
    # h1: t1 0-10, t4 20-35; h2: t2 0-10, t5 20-25; h3: t3 0-80
    assert (found["makespan_s"], found["busy_time_s"]) == (80, 25 + 15 + 80)
    assert found["mean_flow_time_s"] == (10 + 10 + 80 + 35 + 25) / 5


def test_the_execution_modes_agree(gridsched, ex_a):
    """Maestro and actors give the same numbers."""
    found = [numbers(gridsched, *ex_a, "--execution-mode", execution_mode) for execution_mode in ("maestro", "actors")]
    assert found[0]["energy_j"] == pytest.approx(found[1]["energy_j"], rel=1e-12)
    assert found[0]["makespan_s"] == found[1]["makespan_s"] == 80


def test_cfg_and_log_reach_simgrid(gridsched, ex_a, tmp_path):
    """SimGrid writes the requested trace, and its log comes on stderr."""
    trace = tmp_path / "x.trace"
    outcome = gridsched(
        "run",
        *ex_a,
        "--execution-mode",
        "actors",
        "--cfg",
        "tracing:yes",
        "--sg-cfg",
        f"tracing/filename:{trace}",
        "--log",
        "root.thresh:verbose",
        "--quiet",
    )
    assert outcome.status == 0
    assert "%EventDef" in trace.read_text()
    assert "VERBOSE" in outcome.err


def test_timeout(refused, gridsched, ex_a):
    """A run that takes too long is ended with an error, and the next one works."""
    line = refused("run", *ex_a, "--timeout-s", "1e-6", status=1)
    assert "1e-06 s" in line
    assert gridsched("run", *ex_a).status == 0


def test_timeout_of_reading(refused, gridsched, ex_a, monkeypatch):
    """It ends the reading, too, and what the process heard of signals before is as it was."""
    before = signal.getsignal(signal.SIGALRM)

    def never_ends(*_: object) -> None:
        while True:
            pass

    with monkeypatch.context() as patched:
        patched.setattr("gridsched.runs.scenario_maker.read_platform", never_ends)
        assert "0.05 s" in refused("run", *ex_a, "--timeout-s", "0.05", status=1)
    assert signal.getsignal(signal.SIGALRM) == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert gridsched("run", *ex_a, "--driver", "reference", "--timeout-s", "60").status == 0


def test_random_scheduler_repeats_with_its_seed(gridsched, ex_a):
    """The seed decides which running task WQR copies at random."""
    command = [*ex_a, "--scheduler", "wqr", "--set", "pick=random", "--driver", "reference"]
    found = [numbers(gridsched, *command, "--seed", seed)["energy_j"] for seed in (1, 1, 2)]
    assert found[0] == found[1]


def test_export_and_figures(gridsched, ex_a, tmp_path):
    """An export is drawn as Gantt chart and power curve, data beside them."""
    folder = tmp_path / "new" / "out"
    outcome = gridsched("run", *ex_a, "--scheduler", "wqr", "--export", folder)
    assert (outcome.status, outcome.err) == (0, "")
    assert str(folder) in outcome.out
    assert {"jobs.csv", "hosts.csv", "schedule.json", "consumed_energy.csv"} <= {path.name for path in folder.iterdir()}
    for kind, ending in (("gantt", "svg"), ("power", "png")):
        figure = tmp_path / f"{kind}.{ending}"
        plotted = gridsched("plot", kind, folder, "-o", figure)
        assert (plotted.status, plotted.err) == (0, "")
        assert figure.stat().st_size > 1000
        assert figure.with_suffix(".csv").exists()


def test_a_dollar_in_names_is_a_dollar(gridsched, tmp_path, write):
    """A host may be called what is not a formula; figures show it letter by letter."""
    platform = write("p.xml", zone_xml(host_xml("$x_{$")))
    workload, folder = write("w.csv", "id,flops\n1,1000\n"), tmp_path / "out"
    outcome = gridsched(
        "run",
        "--platform",
        platform,
        "--workload",
        workload,
        "--driver",
        "reference",
        "--network",
        "none",
        "--export",
        folder,
    )
    assert outcome.status == 0, outcome.err
    for kind in ("gantt", "power", "trace"):
        plotted = gridsched("plot", kind, folder, "-o", tmp_path / f"{kind}.svg")
        assert (plotted.status, plotted.err) == (0, "")
    assert "<!-- $x_{$ -->" in (tmp_path / "gantt.svg").read_text()


def test_table_of_a_run(gridsched, ex_a):
    """What is 0 and unusual is left out of the table; numbers carry their units."""
    outcome = gridsched("run", *ex_a, "--scheduler", "wqr")
    shown = {line[:28].strip(): line[28:].split() for line in outcome.out.splitlines()[1:]}
    assert shown["makespan"] == ["55", "s"]
    assert shown["energy by plugin"] == ["2,745", "J"]
    assert shown["wasted on cancelled copies"] == ["275", "J"]
    assert shown["work wasted"] == ["1,375", "flop"]
    assert shown["share of the work wasted"] == ["0.207547"]
    assert "tasks dropped" not in shown
    assert "work wasted" not in gridsched("run", *ex_a).out


def test_a_figure_never_replaces_a_file_of_the_export(refused, gridsched, ex_a, tmp_path):
    """The data of a figure called jobs.png would be jobs.csv, which is Batsim's table."""
    folder = tmp_path / "out"
    gridsched("run", *ex_a, "--export", folder)
    assert "input" in refused("plot", "gantt", folder, "-o", folder / "jobs.png", "--force")


def test_a_run_with_a_price_shows_its_profit(gridsched, ex_a):
    """10 - 2,430 J in 80 s."""
    shown = gridsched("run", *ex_a, "--driver", "reference", "--price", 10).out.splitlines()
    assert [" ".join(line.split()) for line in shown[1:3]] == ["profit [money] -2,420", "profit rate [money/s] -30.25"]


@pytest.mark.parametrize(("interval", "asks"), [("2e-5", "2,000,000"), ("1", None)])
def test_many_asks_are_reported_before_the_run(gridsched, write, interval, asks):
    """A task of 40 s with an interval of 2e-5 s: the line is there though the run is ended after half a second."""
    outcome = gridsched(
        "run", "--platform", "platforms/ex_a.xml", "--workload", write("b.csv", "id,flops\n1,4000\n"),
        "--scheduler", "wq", "--mapping-interval-s", interval, *([] if asks is None else ["--timeout-s", "0.5"]),
    )  # fmt: skip
    assert (f"at least {asks} times" in outcome.err) is (asks is not None)
    assert outcome.status == (0 if asks is None else 1)


@pytest.mark.parametrize(("link", "makespan_s", "links_j", "said"), [("", 6.5, None, False), ("10:20", 6, 130, True)])
def test_bytes_are_whole_only_where_links_are_metered(gridsched, write, link, makespan_s, links_j, said):
    """Tasks of 2 and 1 s, 2.25 and 1.25 bytes at 1 byte/s, and 2.25 bytes of result.

    2.25 + 2 + 1.25 + 1 s; or 2 + 2 + 1 + 1 s, and 2 s for the result: 8 s of 10 W, and 10 W more for 5 s of data.
    """
    power = f'<prop id="wattage_range" value="{link}"/>' if link else ""
    hosts = "".join(f'<host id="{h}" speed="1f"><prop id="wattage_per_state" value="1:2:2"/></host>' for h in "ma")
    platform = write(
        "p.xml",
        '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd"><platform version="4.1">'
        '<config><prop id="network/model" value="CM02"/><prop id="network/crosstraffic" value="0"/></config>'
        f'<zone id="z" routing="Full">{hosts}<link id="l" bandwidth="1Bps" latency="0s">{power}</link>'
        '<route src="m" dst="a"><link_ctn id="l"/></route></zone></platform>',
    )
    bag = write("b.csv", "id,flops,input_bytes,output_bytes\n1,2,2.25,0\n2,1,1.25,2.25\n")
    outcome = gridsched(
        "run", "--platform", platform, "--workload", bag, "--master", "m", "--scheduler", "wq", "--json"
    )
    assert outcome.json["makespan_s"] == pytest.approx(makespan_s)
    assert outcome.json.get("energy_links_j") == (None if links_j is None else pytest.approx(links_j))
    assert ("rounds 3 sizes" in outcome.err) is said
