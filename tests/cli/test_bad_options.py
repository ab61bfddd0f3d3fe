"""Options and outputs that are wrong: one line, exit 2, nothing written, nothing replaced."""

from __future__ import annotations

import os

import pytest
from cli_cases import EX_A_TASKS, deployment_xml, host_xml, star_xml, zone_xml

#: words after ``run --platform P --workload W``, and words of the message
RUN_OPTIONS = {
    "unknown option": (["--plattform", "p"], ["--plattform", "--help"]),
    "option without value": (["--seed"], ["--seed"]),
    "seed no number": (["--seed", "x"], ["--seed", "'x'"]),
    "seed negative": (["--seed", "-1"], ["-1", "at least 0"]),
    "surplus argument": (["x"], ["x"]),
    "unknown scheduler": (["--scheduler", "lesca"], ["'lesca'", "'lecsa'"]),
    "scheduler in capitals": (["--scheduler", "LECSA"], ["'LECSA'", "'lecsa'"]),
    "first word of a scheduler": (["--scheduler", "easy"], ["'easy'", "'easy_backfilling'"]),
    "scheduler by its paper": (["--scheduler", "000"], ["'000'", "max_max_upe", "random_mapping"]),
    "no scheduler": (["--scheduler", ""], ["''"]),
    "unknown driver": (["--driver", "simgird"], ["'simgird'", "'simgrid'", "'reference'"]),
    "unknown network": (["--network", "lan"], ["'lan'", "'platform'", "'none'"]),
    "unknown execution mode": (["--execution-mode", "north"], ["'north'", "'maestro'"]),
    "pstate negative": (["--pstate", "-1"], ["-1", "not a whole number of at least 0"]),
    "pstate too high": (["--pstate", "7"], ["7", "'h1'", "0 to 0"]),
    "interval 0": (["--mapping-interval-s", "0"], ["0", "greater than 0"]),
    "interval negative": (["--mapping-interval-s", "-3"], ["-3", "greater than 0"]),
    "interval nan": (["--mapping-interval-s", "nan"], ["nan", "greater than 0"]),
    "interval inf": (["--mapping-interval-s", "inf"], ["inf", "greater than 0"]),
    "interval tiny": (["--mapping-interval-s", "1e-9"], ["1e-09", "30 s", "1e+08"]),
    "periods tiny": (["--energy-budget-j", "1", "--budget-period-s", "1e-9"], ["1e-09", "30 s", "1e+06 periods"]),
    "interval no number": (["--mapping-interval-s", "soon"], ["--mapping-interval-s", "'soon'"]),
    "timeout 0": (["--timeout-s", "0"], ["timeout_s is 0", "greater than 0"]),
    "timeout nan": (["--timeout-s", "nan"], ["nan", "greater than 0"]),
    "timeout inf": (["--timeout-s", "inf"], ["inf", "1e+08"]),
    "set without value": (["--set", "max_replicas"], ["'max_replicas'", "KEY=VALUE"]),
    "set without key": (["--set", "=3"], ["'=3'", "KEY=VALUE"]),
    "unknown parameter": (["--scheduler", "wqr", "--set", "max_replica=3"], ["'max_replica'", "'max_replicas'"]),
    "parameter of nobody": (["--scheduler", "wq", "--set", "x=3"], ["'x'", "none"]),
    "parameter of another": (["--scheduler", "wq", "--set", "wqr.max_replicas=3"], ["'wqr'", "wq"]),
    "value too small": (["--scheduler", "wqr", "--set", "max_replicas=0"], ["'max_replicas'", "0", ">= 1"]),
    "value of another type": (["--scheduler", "wqr", "--set", "max_replicas=many"], ["'max_replicas'", "'many'"]),
    "value no whole number": (["--scheduler", "wqr", "--set", "max_replicas=2.5"], ["'max_replicas'", "2.5"]),
    "value nan": (["--scheduler", "wqr", "--set", "max_replicas=nan"], ["'max_replicas'", "nan"]),
    "value no truth": (["--scheduler", "sufferage", "--set", "reschedule=maybe"], ["'reschedule'", "'maybe'"]),
    "value no choice": (["--scheduler", "lecsa", "--set", "share_rule=values"], ["'values'", "'value'", "'levels'"]),
    "share out of range": (["--scheduler", "lecsa", "--set", "few_tasks_share=1.5"], ["'few_tasks_share'", "1.5"]),
    "share nan": (["--scheduler", "lecsa", "--set", "few_tasks_share=nan"], ["few_tasks_share"]),
    "share a word": (["--scheduler", "lecsa", "--set", "few_tasks_share=x"], ["few_tasks_share"]),
    "budget 0": (["--energy-budget-j", "0"], ["energy_j is 0", "greater than 0 J"]),
    "budget negative": (["--energy-budget-j", "-1"], ["energy_j is -1", "greater than 0 J"]),
    "budget nan": (["--energy-budget-j", "nan"], ["energy_j is nan", "greater than 0 J"]),
    "budget no number": (["--energy-budget-j", "much"], ["--energy-budget-j", "'much'"]),
    "period 0": (["--energy-budget-j", "9", "--budget-period-s", "0"], ["period_s is 0", "greater than 0 s"]),
    "period nan": (["--energy-budget-j", "9", "--budget-period-s", "nan"], ["period_s is nan", "greater than 0 s"]),
    "parked_pstate": (["--parked-pstate", "1"], ["host 'h1'", "P-states 0 to 0", "P-state 1 was asked for"]),
    "power cap 0": (["--power-cap-w", "0"], ["power_cap_w is 0", "greater than 0 W"]),
    "power cap below idle power": (["--power-cap-w", "11"], ["power_cap_w is 11 W", "draw 12 W before anything runs"]),
    "power cap without power": (
        ["--power-cap-w", "99", "--power", "none"],
        ["--power none", "a power cap (--power-cap-w"],
    ),
    "unknown exhaustion": (
        ["--energy-budget-j", "9", "--budget-enforcement", "halt"],
        ["'halt'", "'refuse'", "'stop'"],
    ),
    "exhaustion of no budget": (["--budget-enforcement", "stop"], ["--budget-enforcement", "--energy-budget-j"]),
    "period of no budget": (["--budget-period-s", "9"], ["--budget-period-s", "--energy-budget-j"]),
    "horizon 0": (["--horizon-s", "0"], ["horizon_s is 0", "greater than 0"]),
    "horizon negative": (["--horizon-s", "-1"], ["horizon_s is -1", "greater than 0"]),
    "horizon nan": (["--horizon-s", "nan"], ["horizon_s is nan", "greater than 0"]),
    "charged without events": (["--charge-mapping-time"], ["charge_mapping_time", "--mapping-interval-s"]),
    "cfg malformed": (["--cfg", "tracing"], ["tracing", "KEY:VALUE"]),
    "cfg with =": (["--cfg", "tracing=yes"], ["tracing=yes", "KEY:VALUE"]),
    "log malformed": (["--log", "root"], ["root", "CATEGORY.KEY:VALUE"]),
    "log help": (["--log", "help"], ["help", "CATEGORY.KEY:VALUE"]),
    "reference and cfg": (["--driver", "reference", "--cfg", "a:b"], ["--cfg", "simgrid"]),
    "reference and log": (["--driver", "reference", "--log", "a.b:c"], ["--log", "simgrid"]),
    "reference and network": (["--driver", "reference", "--network", "platform"], ["master", "--deployment"]),
    "alone on SimGrid": (["--network", "alone"], ["--network alone", "--driver reference"]),
    "alone without data": (["--driver", "reference", "--network", "alone"], ["--network alone", "--network platform"]),
    "network without master": (["--network", "platform"], ["master", "--deployment"]),
    "output of another kind": (["-o", "x.txt"], ["x.txt", ".json", ".csv"]),
    "output in no folder": (["-o", "no/such/x.json"], ["x.json", "'no/such'"]),
}
#: Options that only SimGrid can refuse.
SIMGRID_OPTIONS = {
    "cfg key": (["--cfg", "nope:1"], ["nope"]),
    "cfg value": (["--cfg", "network/model:XYZ"], ["XYZ", "LV08"]),
    "cfg type": (["--cfg", "contexts/nthreads:abc"], ["invalid integer"]),
    "log level": (["--log", "root.thresh:loud"], ["loud", "debug"]),
    "log category": (["--log", "nope.thresh:debug"], ["SimGrid"]),
}
COMMANDS = {
    "unknown command": (["comparee"], ["comparee"]),
    "unknown option": (["--quiet"], ["--quiet"]),
    "compare without anything": (["compare"], ["--platform"]),
    "run without workload": (["run", "--platform", "x.xml"], ["--workload"]),
    "validate without anything": (["validate"], ["--platform"]),
    "describe without anything": (["workload", "describe"], ["WORKLOAD"]),
    "generate without output": (["workload", "generate", "--tasks", "3"], ["-o"]),
    "generate without tasks": (["workload", "generate", "-o", "b.csv"], ["--tasks", "missing"]),
    "generate without size": (["workload", "generate", "--tasks", "3", "-o", "b.csv"], ["--mean-flops", "missing"]),
    "generate another ending": (["workload", "generate", "-o", "b.txt"], ["b.txt", ".csv"]),
    "plot without anything": (["plot", "gantt"], ["DIR"]),
    "plot without output": (["plot", "gantt", "x"], ["-o"]),
    "from-table without anything": (["platform", "from-table"], ["TABLE"]),
    "check without anything": (["platform", "check"], ["PLATFORM"]),
    "unknown group command": (["workload", "make"], ["make"]),
}
GENERATE = ["workload", "generate", "--tasks", "3", "--mean-flops", "1"]
GENERATE_OPTIONS = {
    "tasks negative": (["--tasks", "-3"], ["--tasks", "-3"]),
    "tasks half": (["--tasks", "2.5"], ["--tasks", "'2.5'"]),
    "a billion tasks": (["--tasks", "1000000000"], ["--tasks", "10000000"]),
    "mean 0": (["--mean-flops", "0"], ["--mean-flops", "0"]),
    "mean nan": (["--mean-flops", "nan"], ["--mean-flops", "nan"]),
    "mean inf": (["--mean-flops", "inf"], ["--mean-flops", "inf"]),
    "mean a word": (["--mean-flops", "big"], ["--mean-flops", "'big'"]),
    "heterogeneity": (["--heterogeneity", "1.01"], ["--heterogeneity", "1.01"]),
    "seed": (["--seed", "-1"], ["--seed", "-1"]),
    "bytes": (["--input-bytes", "-1"], ["--input-bytes", "-1"]),
    "kind": (["--kind", "bags"], ["--kind", "'bags'", "'bag'"]),
}


def of(cases: dict) -> pytest.MarkDecorator:
    """Return the parametrization over a table of cases."""
    return pytest.mark.parametrize(("words", "told"), cases.values(), ids=cases)


@pytest.mark.systems("utility")
@of(RUN_OPTIONS)
def test_bad_option_of_run(refused, ex_a, words, told):
    """`run` refuses the option."""
    line = refused("run", *ex_a, *words)
    assert all(word in line for word in told), line


@pytest.mark.systems("utility")
@of({name: case for name, case in RUN_OPTIONS.items() if "--scheduler" not in case[0]})
def test_bad_option_of_compare(refused, ex_a, words, told):
    """`compare` refuses the same option before the first run."""
    line = refused("compare", *ex_a, "--schedulers", "lecsa", *words)
    assert line.startswith("gridsched: ")


@of(SIMGRID_OPTIONS)
@pytest.mark.parametrize("command", ["run", "compare", "validate"])
def test_option_that_simgrid_refuses(refused, ex_a, simgrid, command, words, told):
    """SimGrid's message about an option comes as one line."""
    line = refused(command, *ex_a, *words)
    assert all(word in line for word in told), line


@of(COMMANDS)
def test_bad_command(refused, words, told):
    """The message for an unknown or incomplete command names what is missing."""
    line = refused(*words)
    assert all(word in line for word in told), line


@of(GENERATE_OPTIONS)
def test_bad_option_of_generate(refused, tmp_path, words, told):
    """`workload generate` names the option."""
    line = refused(*GENERATE, "-o", tmp_path / "b.csv", *words)
    assert all(word in line for word in told), line


def test_options_beside_a_generator_file(refused, write, tmp_path):
    """Options that would be ignored are refused."""
    file = write("g.toml", "tasks = 3\nmean_flops = 1\n")
    for option in (["--tasks", "3"], ["--seed", "1"], ["--kind", "bag"]):
        line = refused("workload", "generate", file, "-o", tmp_path / "b.csv", *option)
        assert option[0] in line


@pytest.mark.parametrize(
    ("list_", "told"),
    [
        ("wq,lesca", ["'lesca'", "'lecsa'"]),
        ("wq,wq", ["'wq'", "twice"]),
        (",", ["empty"]),
        ("wq;lecsa", ["'wq;lecsa'"]),
    ],
)
def test_bad_list_of_schedulers(refused, ex_a, list_, told):
    """A list with an unknown, repeated or no scheduler is refused."""
    for command in ("compare", "validate"):
        line = refused(command, *ex_a, "--schedulers", list_)
        assert all(word in line for word in told), line


def test_bytes_on_the_reference_driver(refused, write, ex_a, gridsched):
    """Bytes are not silently left out: it has to be asked for."""
    workload = write("w.csv", "id,flops,input_bytes\n1,100,10\n")
    options = [*ex_a[:2], "--workload", workload, "--driver", "reference", "--scheduler", "wq"]
    line = refused("run", *options)
    assert "need a master" in line
    assert "--network none" in line
    assert gridsched("run", *options, "--network", "none").status == 0


def test_deployment_on_the_reference_driver(refused, write):
    """A deployment file needs SimGrid."""
    options = ["--platform", write("p.xml", star_xml()), "--workload", write("w.csv", EX_A_TASKS)]
    deployment = write("d.xml", deployment_xml("m", ["h1"]))
    line = refused("run", *options, "--deployment", deployment, "--driver", "reference")
    assert "simgrid" in line


def test_hosts_without_energy_are_refused_by_name(refused, write, ex_a):
    """A platform without wattages cannot be compared by energy."""
    hosts = host_xml("a") + host_xml("b", watts=None) + host_xml("c", watts=None)
    line = refused("compare", "--platform", write("p.xml", zone_xml(hosts)), *ex_a[2:])
    assert "2 hosts" in line
    assert "'b'" in line
    assert "platform check" in line


def test_validate_needs_the_plugin(refused, ex_a):
    """The reference driver has nothing to compare with."""
    assert "plugin" in refused("validate", *ex_a, "--driver", "reference")


def test_validate_takes_a_folder_or_files(refused, ex_a, tmp_path):
    """Both together are contradictory."""
    line = refused("validate", tmp_path, *ex_a)
    assert "--platform" in line
    assert str(tmp_path) in line


OUTPUTS = {
    "run -o json": (["run", "{e}", "-o", "{x}.json"], "x.json"),
    "run -o csv": (["run", "{e}", "-o", "{x}.csv"], "x.csv"),
    "compare -o": (["compare", "{e}", "-o", "{x}.json"], "x.json"),
    "compare --plot": (["compare", "{e}", "--plot", "{x}.png"], "x.png"),
    "compare --plot, its data": (["compare", "{e}", "--plot", "{x}.png"], "x.csv"),
    "validate -o": (["validate", "{e}", "-o", "{x}.csv"], "x.csv"),
    "generate": ([*GENERATE, "-o", "{x}.csv"], "x.csv"),
    "describe --plot": (["workload", "describe", "{w}", "--plot", "{x}.svg"], "x.svg"),
    "from-table": (["platform", "from-table", "{t}", "-o", "{x}.xml"], "x.xml"),
}


def filled(words: list[str], ex_a: list[str], tmp_path) -> list[str]:
    """Return the command with its files put in."""
    table = tmp_path / "t.csv"
    table.write_text("name,speed,efficiency,idle_power_w\na,5,1,1\n")
    places = {"x": tmp_path / "x", "w": ex_a[3], "t": table}
    command = [part.format(e="{e}", **places) for part in words]
    return [word for part in command for word in (ex_a if part == "{e}" else [part])]


@pytest.mark.parametrize(("words", "name"), OUTPUTS.values(), ids=OUTPUTS)
def test_existing_output_is_replaced_only_by_force(refused, gridsched, ex_a, tmp_path, simgrid, words, name):
    """A file that exists stays as it is without --force, and is replaced with it."""
    command = filled(words, ex_a, tmp_path)
    (tmp_path / name).write_text("precious")
    line = refused(*command)
    assert name in line
    assert "--force" in line
    assert gridsched(*command, "--force").status == 0
    assert (tmp_path / name).read_bytes() != b"precious"


@pytest.mark.parametrize(("words", "name"), OUTPUTS.values(), ids=OUTPUTS)
def test_output_that_cannot_be_written(refused, ex_a, tmp_path, words, name):
    """A folder in the way, no folder, a file for a folder, a name too long: one line each."""
    (tmp_path / name).mkdir()
    assert name in refused(*filled(words, ex_a, tmp_path), "--force")
    for place in ("none/x", "t.csv/x", "n" * 300):
        elsewhere = [word.replace("{x}", str(tmp_path / place)) for word in words]
        line = refused(*filled(elsewhere, ex_a, tmp_path), "--force")
        assert place.split("/")[0] in line


@pytest.mark.parametrize(("words", "name"), OUTPUTS.values(), ids=OUTPUTS)
def test_folder_without_write_permission(refused, gridsched, ex_a, open_folder, without_privileges, words, name):
    """An output in somebody else's folder is refused, and nothing is left there."""
    command = filled(words, ex_a, open_folder)
    gridsched(*command)  # imports what is needed
    for leftover in open_folder.glob("x.*"):
        leftover.unlink()
    line = refused(*command, folder=open_folder, within=without_privileges())
    assert str(open_folder) in line
    assert "writable" in line or "denied" in line


def test_output_never_replaces_an_input(refused, write, ex_a, tmp_path):
    """Not even --force lets an output take the place of an input of the same command."""
    workload = write("w.csv", EX_A_TASKS)
    table = write("t.csv", "name,speed,efficiency,idle_power_w\na,5,1,1\n")
    options = [*ex_a[:2], "--workload", workload, "--force"]
    alias = tmp_path / "alias.csv"
    alias.symlink_to(workload)
    for command in (
        ["run", *options, "-o", workload],
        ["run", *options, "-o", alias],
        ["compare", *options, "--plot", tmp_path / "w.png"],
        ["validate", *options, "-o", workload],
        ["workload", "describe", workload, "--plot", tmp_path / "w.png", "--force"],
        ["workload", "generate", write("g.csv", ""), "-o", tmp_path / "g.csv", "--force"],
    ):
        assert "input" in refused(*command)
    refused("platform", "from-table", table, "-o", table, "--force")


def test_export_folder(refused, gridsched, ex_a, tmp_path):
    """An export replaces another one by force, and never anything else."""
    command = ["run", *ex_a, "--driver", "reference", "--quiet", "--export", tmp_path / "out"]
    assert gridsched(*command).status == 0
    assert "--force" in refused(*command)
    assert gridsched(*command, "--force").status == 0
    (tmp_path / "out" / "thesis.tex").write_text("years of work")
    assert "thesis.tex" in refused(*command, "--force")
    (tmp_path / "file").write_text("x")
    for place in ("file", "file/out"):
        assert "file" in refused(*command[:-1], tmp_path / place, "--force")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "jobs.csv").write_text("x")
    assert "mine" in refused(*command[:-1], tmp_path / "mine", "--force")


def test_file_names_with_line_breaks_stay_in_one_line(refused, ex_a, tmp_path):
    """Whatever a file is called, its message is one line without control characters."""
    name = "a\nb\x1b[31m\tc.xml"
    line = refused("run", "--platform", tmp_path / name, *ex_a[2:])
    assert "\x1b" not in line
    assert "a b" in line


def test_surplus_of_environment(gridsched, ex_a, monkeypatch):
    """A narrow or absurd terminal width does not break a command."""
    for columns in ("1", "0", "-5", "many"):
        monkeypatch.setenv("COLUMNS", columns)
        assert gridsched("run", *ex_a, "--driver", "reference").status == 0
        assert gridsched("run", "--help").status == 0
    assert os.environ["COLUMNS"] == "many"


FILES_GIVEN = {
    "argument of describe": (["workload", "describe", "x"], "WORKLOAD x: "),
    "argument of check": (["platform", "check", "x.xml"], "PLATFORM x.xml: "),
    "argument of another format": (["platform", "check", "w.swf"], "PLATFORM w.swf, line 1: "),
    "argument of a study": (["study", "check", "x.toml"], "STUDY x.toml: "),
    "option of a log": (["run", "--workload", "x.swf"], "--workload x.swf: "),
    "option of a platform": (["run", "--platform", "w.swf", "--workload", "b.csv"], "--platform w.swf, line 1: "),
    "option of prices": (["run", "--workload", "w.swf", "--carbon", "x.csv"], "--carbon x.csv: "),
    "one of several": (["view", "w.swf", "-o", "p.html"], "DIR w.swf: "),
    "two options": (["run", "--platform", "x.csv", "--workload", "x.csv"], "x.csv: "),
}


@pytest.mark.parametrize(("words", "begin"), FILES_GIVEN.values(), ids=FILES_GIVEN)
def test_an_error_about_a_file_begins_with_what_names_it(refused, tmp_path, monkeypatch, words, begin):
    """The option, or the argument as the help calls it; neither, if two have this file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "w.swf").write_text("; MaxProcs: 2\n1 0 -1 100 1 -1 -1 1 100 -1 1 1 7 -1 -1 -1 -1 -1\n")
    (tmp_path / "b.csv").write_text("id,flops\n1,100\n")
    assert refused(*words).startswith(f"gridsched: {begin}")
