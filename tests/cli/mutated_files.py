"""Right files for every reader, the commands that read them, and how files are damaged."""

from __future__ import annotations

import gzip
import io
import json
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from cli_cases import EX_A_TASKS, ROOT, deployment_xml, host_xml, platform_text, star_xml, zone_xml
from hypothesis import strategies as st
from made_files import xlsx


@dataclass(frozen=True)
class Reader:
    """Files that belong together, and commands that read them.

    ``{}`` in a command represents the files' folder; `made` are the names that its last command
    may leave behind. `damaged` are the files of which one is damaged, by default all.
    """

    files: Mapping[str, str | bytes]
    commands: tuple[str, ...]
    damaged: tuple[str, ...] = ()
    made: tuple[str, ...] = ()
    is_slow: bool = False
    needs_simgrid: bool = False
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", self.damaged or tuple(self.files))


def shipped(*names: str) -> dict[str, bytes]:
    """Return the content of files that come with gridsched, by their names."""
    return {Path(name).name: (ROOT / name).read_bytes() for name in names}


PLATFORM = zone_xml(
    "\n".join(
        [
            host_xml("h1", "100f,50f", "4:50:50,2:20:20", ' core="2"'),
            host_xml("h2", "50f,25f", "4:20,2:9", properties='<prop id="wattage_off" value="1"/>'),
            '<link id="l" bandwidth="10Bps" latency="1ms"/>',
            '<route src="h1" dst="h2"><link_ctn id="l"/></route>',
        ]
    )
)
_CLUSTER = (
    '<cluster id="{0}" prefix="{0}" radical="0-3,7" suffix="" speed="1Gf" bw="1GBps" lat="1us"{1}>'
    '<prop id="wattage_per_state" value="1:2:3"/></cluster>'
)
CLUSTER = zone_xml(_CLUSTER.format("c", ""))
TOPOLOGIES = platform_text(
    '<zone id="w" routing="Full">'
    + "\n".join(
        [
            _CLUSTER.format("t", ' topology="TORUS" topo_parameters="2,2"'),
            _CLUSTER.format("f", ' topology="FAT_TREE" topo_parameters="2;2,2;1,2;1,1"'),
            _CLUSTER.format("d", ' topology="DRAGONFLY" topo_parameters="1,3;1,2;1,1;2"'),
            '<zone id="v" routing="Cluster"><cabinet id="b" prefix="b" suffix="" radical="1-2" '
            'speed="1Gf" bw="1Gbps" lat="1us"/></zone>',
        ]
    )
    + "</zone>"
)
BAG = (
    "# nominal_heterogeneity=0.5\n"
    "id,flops,input_bytes,output_bytes,submit_time_s,input_files\n"
    "1,1000,0,0,0,f;g\n2,500.5,0,0,0.5,\n3,2e3,0,0,10,f\n"
)
FILES = "file,size_bytes,location\nf,1000,z\ng,5,h1\nf,1000,h2\n"
TABLE = (
    "name,speed,efficiency,idle_power_w,count,pstates,off_power_w,cluster,cores\n"
    "a,100,2.0,4,2,1:1;0.5:0.4,0,A,1\nb,50,2.5,4,1,1:1,0,B,2\n"
)
GREEN500 = (
    "List of November\nGreen500_Rank,Mflops/Watt,Name,Power (kW),TOP500_Rank,RMax,Total Cores\n"
    "1,2026.48,A,85.1,64,172490,8192\n2,1684.2,B,38.8,,65350,4096\n"
)
TOP500 = (
    '<?xml version="1.0"?><top500:list xmlns:top500="http://www.top500.org/xml/top500/1.0" '
    'date="2019/11/18"><top500:site><top500:rank>1</top500:rank><top500:name>A</top500:name>'
    "<top500:r-max>148600000</top500:r-max><top500:power>10096</top500:power></top500:site>"
    "</top500:list>"
)


def parquet_bytes(columns: Mapping[str, list]) -> bytes:
    """Return a table as a Parquet file."""
    stream = io.BytesIO()
    pq.write_table(pa.table(dict(columns)), stream)
    return stream.getvalue()


#: Logs of parallel jobs by the names that tell their formats.
LOGS: dict[str, str | bytes] = {
    "a.swf": (
        "; MaxProcs: 4\n  1 100 -1 10 3 -1 -1 3 10 -1 1\n2 101 -1 5 4 -1 -1 4 5\n"
        "3 102 -1 2.5 -1 -1 -1 1 20 -1 0 1 1 -1 -1 -1 -1 x:2x8\n"
    ),
    "a.psv": (
        "JobIDRaw|Submit|Start|End|ElapsedRaw|Timelimit|AllocNodes|State\n"
        "7|2024-03-01T10:00:00|Unknown|Unknown|60|1-00:00:00|2|COMPLETED\n"
        "7.0|2024-03-01T10:00:00|Unknown|Unknown|60||2|COMPLETED\n"
        "8|1709287200|2024-03-01T10:00:00|2024-03-01T10:00:09||UNLIMITED|1|FAILED\n"
    ),
    "a.json": (
        '{"nb_res": 4, "jobs": [{"id": "1", "subtime": 0, "walltime": 9, "res": 2, "profile": "d"},'
        ' {"id": 2, "subtime": 1.5, "res": 1, "profile": "p"}], "profiles": {"d": {"type": "delay",'
        ' "delay": 8}, "p": {"type": "parallel_homogeneous", "cpu": 1e9, "com": 0}}}'
    ),
}
LOGS["b.sacct"] = (
    "JobID|JobIDRaw|User|Partition|Submit|ElapsedRaw|AllocNodes|ConsumedEnergyRaw|SubmitLine\n"
    "7_1|8|ann|batch|0|60|2|9000|sbatch --array=1-2 a.sh\n"
    "7_2|7|ann|batch|0|70|1||sbatch --array=1-2 a.sh\n"
    "9|9|bob|short|5|9|1|1.5K|sbatch --dependency=afterok:7+1,singleton b.sh\n"
)
LOGS["a.jobs.csv"] = (
    "id,submit_time_s,run_time_s,nodes,requested_time_min,user,node_power_w,afterany\n"
    "1,0,60,2,9,ann,120,\n2,2024-03-01T10:00:00,70,1,,bob,,1\n3,1.5,5,1,1,,180.5,1 2\n"
)
LOGS["a.parquet"] = parquet_bytes(
    {
        "id": [1, 2],
        "submit_time_s": [datetime(2024, 3, 1), datetime(2024, 3, 2)],
        "run_time_s": [60.0, 7.5],
        "nodes": [2, 1],
        "power_w": [[100.0, 200.0], []],
        "user": ["ann", None],
    }
)
LOGS["z.swf.gz"] = gzip.compress(LOGS["a.swf"].encode(), mtime=0)

GENERATORS = {
    "bag": "kind = 'bag'\ntasks = 5\nmean_flops = 1e2\nheterogeneity = 0.5\nseed = 3\ninput_bytes = 0\n",
    "utility": "kind = 'utility'\nseed = 1\ndays = 0.02\nspecial_machine_counts = [2]\n"
    "special_task_types = [2]\ngeneral_machine_counts = [3, 5]\ntask_types = 10\n"
    "tasks_per_type = 300\ntasks_per_type_deviation = 30\ntasks_per_type_in_s = 86400\n"
    "waves_per_day = [4, 12]\nenergy_budget_j = 1e7\nbudget_period_s = 7200\n"
    "baseline_duration_s = [1000, 2000]\nburst_duration_s = [100, 200]\n"
    "baseline_factor = [0.5, 0.7]\nburst_factor = [1, 2]\netc_mean_s = 50\netc_task_cov = 0.1\n"
    "power_factors = [1, 0.5]\nn_classes = 3\nmapping_interval_s = 60\n",
    "parallel": "kind = 'parallel'\nseed = 1\ngeneral_clusters = [[12, 8], [8, 16]]\n"
    "special_clusters = [[10, 12]]\ngeneral_task_types = 6\nspecial_task_types = [4]\n"
    "core_bands = [[40, 1, 8], [40, 9, 40], [20, 41, 0]]\nreference_time_s = [1800, 14400]\n"
    "warm_up_s = 600\ndays = 0.02\ntasks_per_day = 1200\nwide_from_cores = 41\n"
    "waves_per_day = [4, 12]\nenergy_budget_j = 8e6\nbudget_period_s = 10800\n"
    "speedup_sigma = [4, 10]\npower_factors = [1, 0.5]\nbusy_hours = [9, 18]\nbusy_factor = 2\n"
    "plateau_times = [2, 4]\ntotal_cores = 300\n",
    "bursts": "kind = 'parallel'\narrival_pattern = 'bursts'\nbaseline_duration_s = [600, 900]\n"
    "burst_duration_s = [100, 200]\nbaseline_factor = [0.5, 0.7]\nburst_factor = [1, 2]\n"
    "general_clusters = [[12, 8]]\nspecial_clusters = []\ngeneral_task_types = 3\n"
    "special_task_types = []\ndays = 0.02\ntasks_per_day = 500\nwarm_up_s = 600\n"
    "utility_classes = 'plateau_linear'\n",
    "profit": "kind = 'profit'\nseed = 1\nsystem_seed = 2\ntasks = 60\ntask_types = 5\n"
    "machine_types = 3\nmachines_per_type = 2\nbags = 3\nbag_interval_s = 7200\n"
    "time_mean_s = 100\ntime_task_cov = 0.5\nidle_share = 0.05\n",
    "robust": "kind = 'robust'\nseed = 1\nsystem_seed = 3\nnodes = 3\nprocessors = [1, 2]\n"
    "cores = [1, 2]\ntotal_cores = 6\npstates = 2\n"
    "pstate_slowdown = [0.1, 0.2]\npower_w = [125, 135]\n"
    "highest_voltage_v = [1.4, 1.5]\nsupply_efficiency = [0.9, 0.98]\ntask_types = 4\n"
    "time_mean_s = 750\ntime_machine_cov = 0.25\ngrid_s = 10\nphases = [[5, 8], [3, 48]]\n"
    "budget_tasks = 8\nscaled_to_system = false\n",
    "stream of workflows": "kind = 'workflow'\nshape = 'layered'\ntasks = 20\nwidth = 0.5\ndensity = 0.4\n"
    "regularity = 0.8\njump = 2\nmean_flops = 1e9\nheterogeneity = 1\nccr = 0.5\ndata_heterogeneity = 0.5\n"
    "reference_speed = 1e9\nreference_bandwidth = 1e8\nworkflows = 3\nmean_interarrival_s = 9\nseed = 4\n",
    "rigid_jobs": "kind = 'rigid_jobs'\njobs = 20\nnodes = 16\nload = 0.9\n"
    "run_time_median_s = 100\nrun_time_sigma = 1\nlongest_run_time_s = 1000\nwidest_job = 8\n"
    "estimate_factor = [1, 5]\nidle_w = 5\nbusy_w = 10\n",
}
#: A scheduler for a run of each kind that has its own system.
SCHEDULERS = {
    "utility": "max_max_upe",
    "parallel": "arrival_aware",
    "bursts": "arrival_aware",
    "profit": "mct",
    "robust": "shortest_queue",
    "rigid_jobs": "easy_backfilling",
}

MEASURED = {
    "g.toml": "kind = 'utility'\ndays = 0.01\n"
    + "".join(f"{part}_csv = '{part}.csv'\n" for part in ("machines", "etc", "apc", "classes", "tasks")),
    "machines.csv": "machine_type,count\nsmall,2\nbig,1\n",
    "etc.csv": "task_type,machine_type,pstate,etc_s\nsort,small,0,600\nsort,small,1,840.5\n"
    "sort,big,0,300\nsort,big,1,420\nfft,big,0,1200\n",
    "apc.csv": "task_type,machine_type,pstate,apc_w\nsort,small,0,100\nsort,small,1,65\n"
    "sort,big,0,200\nsort,big,1,130\nfft,big,0,199.5\n",
    "classes.csv": "utility_class,start_time,start_fraction,urgency_modifier,kind\n0,0,1,1,\n"
    "0,20,0.6,0.5,\n0,60,0,1,decaying\n1,0,1,1,linear\n1,4,0,1,linear\n",
    "tasks.csv": "id,submit_time_s,task_type,priority,urgency,utility_class\n"
    "# two tasks\n7,120.25,fft,8,0.1,0\n3,0,sort,4,0,1\n",
}
PARALLEL = {
    "g.toml": "kind = 'parallel'\nclusters_csv = 'clusters.csv'\netc_csv = 'etc.csv'\n"
    "task_types_csv = 'types.csv'\ntasks_csv = 'tasks.csv'\ndays = 0.01\nwarm_up_s = 0\n",
    "clusters.csv": "cluster,nodes,cores_per_node\na,40,1\nb,10,8\n",
    "etc.csv": "task_type,cluster,pstate,nodes,time_s,power_w\nt1,a,0,1,100,7\nt1,a,0,4,50,7\n"
    "t1,a,0,32,30,7\nt1,b,0,1,60,9\nt1,b,0,4,20,9\nt2,b,0,10,5,2\n",
    "types.csv": "task_type,least_cores,most_cores\nt1,1,32\nt2,73,80\n",
    "tasks.csv": "id,submit_time_s,task_type,cores,priority,urgency,utility_class\n"
    "4,30,t1,8,2,0.1,0\n7,10,t1,32,1,0.2,3\n1,20,t2,80,3,0.6,1\n",
}
PROFIT = {
    "g.toml": "kind = 'profit'\nmachines_csv = 'machines.csv'\netc_csv = 'etc.csv'\n"
    "apc_csv = 'apc.csv'\ncounts_csv = 'counts.csv'\n",
    "machines.csv": "machine_type,count,idle_w\nsmall,2,3\nbig,1,0\n",
    "etc.csv": "task_type,machine_type,pstate,etc_s\nsort,small,0,600\nsort,big,0,300\nfft,big,0,1200\n",
    "apc.csv": "task_type,machine_type,pstate,apc_w\nsort,small,0,100\nsort,big,0,200\nfft,big,0,199.5\n",
    "counts.csv": "task_type,tasks\nsort,5\nfft,3\n",
}
WORKFLOW = {
    "w.toml": "kind = 'workflow'\ntasks_csv = 't.csv'\nedges_csv = 'e.csv'\ninputs_from = 'h1'\n",
    "t.csv": "id,flops,submit_time_s,workflow\na,1000,0,one\nb,2e3,0.5,one\nc,500.5,7,two\n",
    "e.csv": "task,on,bytes,file\nb,a,200,f\nc,a,200,f\nc,b,3,\na,,50,raw\nc,,50,raw\n",
}
TIMES = {
    "w.toml": "kind = 'workflow'\ntimes_csv = 't.csv'\nedges_csv = 'e.csv'\n",
    "t.csv": "id,h1,h2\na,10,20.5\nb,,5\nc,1e1,7\n",
    "e.csv": "task,on,bytes\nb,a,200\nc,b,3\n",
}
_TASKS_1_4 = (
    '{"name": "a", "id": "1", "runtime": 2.5, "parents": [], "machine": "m", "cores": 2, "files": '
    '[{"link": "output", "name": "x", "size": 500}, {"link": "input", "name": "raw", "sizeInBytes": 9}]}, '
    '{"name": "b", "runtimeInSeconds": 4, "parents": ["1"], "files": [{"link": "input", "name": "x"}]}'
)
#: Workflows as others describe them.
WORKFLOWS_OF_OTHERS = {
    "old.json": '{"schemaVersion": "1.4", "workflow": {"machines": [{"nodeName": "m", "cpu": {"speed": 3}}], '
    f'"tasks": [{_TASKS_1_4}]}}}}',
    "new.json": '{"schemaVersion": "1.5", "workflow": {"specification": {"tasks": [{"id": "a", "parents": [], '
    '"inputFiles": ["raw"], "outputFiles": ["x"]}, {"id": "b", "parents": ["a"], "inputFiles": ["x"]}], "files": '
    '[{"id": "x", "sizeInBytes": 500}, {"id": "raw", "sizeInBytes": 9}]}, "execution": {"tasks": [{"id": "a", '
    '"runtimeInSeconds": 2.5, "coreCount": 2, "machines": ["m"]}, {"id": "b", "runtimeInSeconds": 4}], "machines": '
    '[{"nodeName": "m", "cpu": {"speedInMHz": 1200}}]}}}',
    "w.dax": (ROOT / "examples/diamond.dax").read_text(),
    "w.dot": 'digraph G { // by hand\nroot [size=0];\na [size="30.5", alpha=".5"]; "b c" [size=40]\n'
    'root -> a [size=7]; a -> "b c" [size="500"];\n}\n',
}
STUDY = """name = "small"
seed = 3
replicates = 2
driver = "reference"
network = "none"
metrics = ["makespan_s", "energy_j", "ed2p"]
baseline = "wq"
schedulers = ["wq", {id = "wqr", max_replicas = [2, 3]}]
platform = "p.xml"

[workload]
generator = "bag"
tasks = 12
mean_flops = 1e3
heterogeneity = [0.5, 1]

[group.environment.low]
pstate = 0
[group.environment.high]
pstate = 1

[expressions]
ed2p = "energy_j * makespan_s ** 2 / (1 + sqrt(abs(makespan_s)))"

[[figures]]
name = "one"
kind = "lines"
along = "workload.heterogeneity"
metric = "energy_j"
"""

RUN = "run --platform {}/p.xml --workload {}/w.csv --timeout-s 20"
ON_WORKFLOW = "run --platform {}/p.xml --workload {}/w.toml --scheduler ready_min_min --timeout-s 20 --json"
ON_REFERENCE = "run --platform {}/p.xml --workload {}/w.csv --driver reference"


def readers() -> dict[str, Reader]:
    """Return all readers by name, but those whose files a command must make first."""
    bag = {"w.csv": EX_A_TASKS}
    both = {"p.xml": PLATFORM, **bag}
    table = "platform from-table {}/%s -o {}/made.xml --json --year 2012"
    found = {
        "platform": Reader(both, (ON_REFERENCE,), ("p.xml",)),
        "platform on SimGrid": Reader(both, (RUN,), ("p.xml",), is_slow=True, needs_simgrid=True),
        "platform in SimGrid's eyes": Reader(
            {"p.xml": PLATFORM, "d.xml": deployment_xml("h1", ["h2"])},
            ("platform check {}/p.xml --deployment {}/d.xml --json",),
            is_slow=True,
            needs_simgrid=True,
        ),
        "cluster": Reader({"p.xml": CLUSTER, **bag}, (ON_REFERENCE,), ("p.xml",)),
        "topologies": Reader({"p.xml": TOPOLOGIES, **bag}, (f"{ON_REFERENCE} --power none",), ("p.xml",)),
        "topologies on SimGrid": Reader(
            {"p.xml": TOPOLOGIES, **bag}, (f"{RUN} --power none",), ("p.xml",), is_slow=True, needs_simgrid=True
        ),
        "profiles": Reader(
            {**bag, "p.xml": (ROOT / "examples/failing.xml").read_bytes()},
            (f"{ON_REFERENCE} --horizon-s 1e4",),
            ("p.xml",),
        ),
        "switching": Reader(
            {**bag, "p.xml": (ROOT / "examples/boot.xml").read_bytes()},
            (f"{ON_REFERENCE} --scheduler idle_off",),
            ("p.xml",),
        ),
        "power for a platform": Reader(
            {"p.xml": PLATFORM}, ("platform add-power {}/p.xml --power 1:2:3 -o {}/made.xml",), made=("made.xml",)
        ),
        "deployment": Reader(
            {"p.xml": star_xml(), **bag, "d.xml": deployment_xml("m", ["h1", "h2"])},
            (f"{RUN} --deployment {{}}/d.xml",),
            ("d.xml",),
            is_slow=True,
            needs_simgrid=True,
        ),
        "bag": Reader(
            {"p.xml": PLATFORM, "w.csv": BAG, "f.csv": FILES},
            (
                f"{ON_REFERENCE} --files {{}}/f.csv --scheduler xsufferage",
                "workload describe {}/w.csv --files {}/f.csv --json",
            ),
            ("w.csv", "f.csv"),
        ),
        "events": Reader(
            {**both, "e.csv": "time_s,event,what\n5,cancel,3\n10,drain,h1\n25,resume,h*\n30,power_cap,none\n"},
            (f"{ON_REFERENCE} --events {{}}/e.csv --horizon-s 1e4",),
            ("e.csv",),
        ),
        "prices": Reader(
            {
                **both,
                "m.csv": (ROOT / "examples/prices.csv").read_bytes(),
                "b.csv": (ROOT / "examples/day_and_night.csv").read_bytes(),
            },
            (
                f"{ON_REFERENCE} --price 1 --prices {{}}/m.csv",
                f"{ON_REFERENCE} --money-budget 5 --budget-prices {{}}/b.csv --budget-period-s 50",
            ),
            ("m.csv", "b.csv"),
        ),
        "own table": Reader({"t.csv": TABLE}, (table.removesuffix(" --year 2012") % "t.csv",), made=("made.xml",)),
        "Green500": Reader({"t.csv": GREEN500}, (table % "t.csv",), made=("made.xml",)),
        "TSV": Reader({"t.tsv": GREEN500.replace(",", "\t")}, (table % "t.tsv",), made=("made.xml",)),
        "TOP500": Reader({"t.xml": TOP500}, (table % "t.xml",), made=("made.xml",)),
        "workbook": Reader(
            {"t.xlsx": xlsx([[line.split(",") for line in GREEN500.splitlines()[1:]]])},
            (table % "t.xlsx",),
            made=("made.xml",),
            is_slow=True,
        ),
        "measured": Reader(
            MEASURED,
            (
                "workload describe {}/g.toml --json",
                "run --workload {}/g.toml --scheduler max_max_upe --driver reference --json",
            ),
        ),
        "parallel tables": Reader(
            PARALLEL,
            (
                "workload describe {}/g.toml --json",
                "run --workload {}/g.toml --scheduler arrival_aware --driver reference --json",
            ),
        ),
        "profit tables": Reader(
            PROFIT,
            ("optimize pareto --workload {}/g.toml --json", "optimize profit --workload {}/g.toml --price 1e9 --json"),
        ),
        "run times": Reader(
            shipped("examples/measured.toml", "examples/measured_times.csv"),
            ("run --workload {}/measured.toml --scheduler shortest_queue --driver reference",),
        ),
        "workflow tables": Reader(
            {"p.xml": PLATFORM, **WORKFLOW},
            (f"{ON_WORKFLOW} --driver reference --network none", "workload describe {}/w.toml --json"),
            tuple(WORKFLOW),
        ),
        "workflow tables on SimGrid": Reader(
            {"p.xml": PLATFORM, **WORKFLOW}, (ON_WORKFLOW,), tuple(WORKFLOW), is_slow=True, needs_simgrid=True
        ),
        "times by host": Reader(
            {"p.xml": PLATFORM, **TIMES}, (f"{ON_WORKFLOW} --driver reference --network none",), tuple(TIMES)
        ),
        "study": Reader({"s.toml": STUDY, "p.xml": PLATFORM}, ("study check {}/s.toml --json",), ("s.toml",)),
    }
    for name, text in LOGS.items():
        log = f"{{}}/{name}"
        found[name] = Reader(
            {name: text},
            (f"workload describe {log}", f"run --workload {log} --scheduler fcfs --driver reference --nodes 9"),
        )
        if "_w" in str(text) or "ConsumedEnergy" in str(text):
            options = "--nodes 9 --power measured:clamped --set 'order=multifactor(PriorityWeightFairshare=9)'"
            found[f"{name} by users"] = Reader(
                {name: text}, (f"run --workload {log} --scheduler easy_backfilling --driver reference {options}",)
            )
        found[f"{name} as others"] = Reader(
            {name: text},
            (f"workload import {log} -o {{}}/made.csv", f"workload convert {log} -o {{}}/made.swf"),
            made=("made.csv", "made.swf"),
        )
    for name, text in WORKFLOWS_OF_OTHERS.items():
        found[f"{name} as tables"] = Reader(
            {name: text},
            (f"workflow import {{}}/{name} --reference-speed 10 --inputs-from h -o {{}}/made.toml",),
            made=("made.toml", "made.tasks.csv", "made.edges.csv"),
        )
    for kind, text in GENERATORS.items():
        run = f"run --workload {{}}/g.toml --driver reference --json --scheduler {SCHEDULERS.get(kind)}"
        found[f"generator {kind}"] = Reader(
            {"g.toml": text},
            ("workload describe {}/g.toml --json",) * (kind not in ("profit", "robust"))
            + (run,) * (kind in SCHEDULERS),
        )
    found["generated bag"] = Reader(
        {"g.toml": GENERATORS["bag"]}, ("workload generate {}/g.toml -o {}/made.csv",), made=("made.csv",)
    )
    return found


#: Pieces that hurt readers.
PIECES = [
    b"",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\n",
    b"\r",
    b'"',
    b"'",
    b"<",
    b">",
    b"&",
    b"&x;",
    b"&#0;",
    b"]]>",
    b"<!--",
    b"-->",
    b",",
    b";",
    b":",
    b"=",
    b"[",
    b"{",
    b"\t",
    b"\x1b[31m",
    "\u202e\U0001d7d8".encode(),
    b"<host/>",
    b"<zone>",
    b'<!DOCTYPE x [<!ENTITY x "y">]>',
    b"%s",
    b"\\",
    b"../",
    b" " * 200,
    b"$",
    b"#",
    "\u2028".encode(),
]
#: Words in the place of others.
WORDS = [
    b"nan",
    b"inf",
    b"-inf",
    b"Infinity",
    b"-1",
    b"-0",
    b"0",
    b"1",
    b"0.5",
    b"1e999",
    b"1e-999",
    b"1e30",
    b"1e-30",
    b"1e18",
    b"1e9",
    b"1000000",
    b"100000",
    b"2147483648",
    b"9223372036854775807",
    b"9" * 30,
    b"9" * 400,
    b"1" * 5000,
    "\u00b2".encode(),
    "\u0663".encode(),
    b"true",
    b"null",
    b"[]",
    b"{}",
    b"x",
    b"$x$y",
    b'""',
    b"''",
    b"a" * 2000,
]
_WORD = re.compile(rb"[\w.+-]+")


@st.composite
def mutated(draw: st.DrawFn, original: str | bytes) -> bytes:
    """Draw a file that differs from the original in a few places; of an archive one member."""
    data = original.encode() if isinstance(original, str) else original
    if draw(st.integers(0, 4)):
        if data.startswith(b"PK\x03\x04"):
            return _member_changed(draw, data)
        if data.startswith(b"\x1f\x8b"):
            return gzip.compress(_changed(draw, gzip.decompress(data)), mtime=0)
    return _changed(draw, data)


def _changed(draw: st.DrawFn, original: bytes) -> bytes:
    data = bytearray(original)
    kinds = ["word"] * 6 + ["cut", "flip", "put", "replace", "remove", "double"]
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(data)))
        stop = min(len(data), place + draw(st.integers(0, 12)))
        kind = draw(st.sampled_from(kinds))
        words = list(_WORD.finditer(data)) if kind == "word" else []
        if words:
            word = words[draw(st.integers(0, len(words) - 1))]
            data[word.start() : word.end()] = draw(st.sampled_from(WORDS))
        elif kind == "cut":
            del data[place:]
        elif kind == "flip" and place < len(data):
            data[place] ^= 1 << draw(st.integers(0, 7))
        elif kind == "put":
            data[place:place] = draw(st.sampled_from(PIECES))
        elif kind == "replace":
            data[place:stop] = draw(st.sampled_from(PIECES))
        elif kind == "remove":
            del data[place:stop]
        else:
            data[place:place] = data[place:stop]
    return bytes(data)


def _member_changed(draw: st.DrawFn, data: bytes) -> bytes:
    """Return an archive with one member changed: of an export's an array or the description."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    # the description contains most of it
    names = [*members, *["description.npy"] * (5 * ("description.npy" in members))]
    name = draw(st.sampled_from(names))
    if name.endswith(".npy") and draw(st.integers(0, 3)):
        members[name] = _array_changed(draw, name, members[name])
    else:
        members[name] = _changed(draw, members[name])
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for each, content in members.items():
            archive.writestr(each, content)
    return stream.getvalue()


def _array_changed(draw: st.DrawFn, name: str, data: bytes) -> bytes:
    array = np.load(io.BytesIO(data))
    if name == "description.npy":
        array = np.frombuffer(_description_changed(draw, array.tobytes()), np.uint8)
    elif array.size and draw(st.booleans()):
        flat = array.reshape(-1)
        entry, field_name = draw(st.integers(0, len(flat) - 1)), None
        if array.dtype.names:
            field_name = draw(st.sampled_from(array.dtype.names))
        values = (
            [-1, 0, 1, 7, 2**31, 2**62] if "i" in array.dtype.str else [-1, 0, 1e-9, 1e308, np.nan, np.inf, -np.inf]
        )
        value = draw(st.sampled_from(values))
        with np.errstate(all="ignore"):
            if field_name is None:
                flat[entry] = np.array(value).astype(array.dtype)
            else:
                flat[field_name][entry] = np.array(value).astype(array.dtype[field_name])
    else:
        array = draw(
            st.sampled_from(
                [
                    array[:-1],
                    array[None],
                    np.concatenate([array, array]),
                    np.zeros(array.shape, "S8"),
                    array[::-1].copy(),
                    np.array(3),
                    np.zeros(0, array.dtype),
                ]
            )
        )
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


ODD: list[Any] = [
    None,
    True,
    -1,
    0,
    0.5,
    10**30,
    10**400,
    float("nan"),
    float("inf"),
    "",
    "x",
    "$x$y",
    "\n",
    [],
    [1],
    {},
    {"x": 1},
    [[[]]],
]


def _description_changed(draw: st.DrawFn, text: bytes) -> bytes:
    """Return JSON with one value anywhere in it changed or gone, or its text changed."""
    if not draw(st.integers(0, 3)):
        return _changed(draw, text)
    content = json.loads(text)
    place: Any = content
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = draw(st.sampled_from(keys))
        below = place[key]
        if not (isinstance(below, dict | list) and below and draw(st.integers(0, 3))):
            break
        place = below
    if draw(st.integers(0, 4)):
        place[key] = draw(st.sampled_from(ODD))
    else:
        del place[key]
    return json.dumps(content).encode()
