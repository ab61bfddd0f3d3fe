"""What each option of each command is tried with: a pair of calls that differ in it alone."""

from __future__ import annotations

from dataclasses import dataclass

from cli_cases import EX_A_TASKS, deployment_xml, host_xml, platform_text, star_xml

#: Job 2 runs longer than it asked for, job 3 waits for one that failed.
SACCT = """JobIDRaw|User|Partition|Submit|Start|End|ElapsedRaw|TimelimitRaw|NNodes|AllocCPUS|ReqNodes|\
State|NodeList|Dependency
1|u|a|2026-03-02T00:00:00|2026-03-02T00:00:00|2026-03-02T00:10:00|600|20|1|4|2|FAILED|a1|
2|u|a|2026-03-02T00:00:10|2026-03-02T00:00:20|2026-03-02T00:10:20|600|5|1|4|1|COMPLETED|a2|
3|v|a|2026-03-02T00:00:10|2026-03-02T00:10:00|2026-03-02T00:15:00|300|20|1|4|1|COMPLETED|a1|afterok:1
4|v|a|2026-03-02T00:00:20|2026-03-02T00:20:00|2026-03-02T00:40:00|1200|60|2|8|1|COMPLETED|a[1-2]|
5|w|a|2026-03-02T00:00:30|2026-03-02T00:18:20|2026-03-02T00:20:00|100|50|1|2|1|COMPLETED|a2|
6|w|a|2026-03-02T00:00:30|2026-03-02T00:18:20|2026-03-02T00:20:00|100|5|1|2|1|COMPLETED|a2|
"""
#: Two jobs that are submitted together, the longer one first, and one that comes later.
SAME = """JobIDRaw|Submit|Start|End|ElapsedRaw|TimelimitRaw|NNodes|AllocCPUS|State|NodeList
1|2026-03-02T00:00:00|2026-03-02T00:00:00|2026-03-02T00:10:00|600|20|1|1|COMPLETED|n0
2|2026-03-02T00:00:00|2026-03-02T00:10:00|2026-03-02T00:11:00|60|2|1|1|COMPLETED|n0
3|2026-03-02T00:20:00|2026-03-02T00:20:00|2026-03-02T00:21:00|60|2|1|1|COMPLETED|n0
"""
CONF = """NodeName=a[1-2] CPUs=4
PartitionName=a Nodes=a[1-2] Default=YES MaxTime=INFINITE State=UP
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
"""
#: It starts its one task at the fourth time at which it wakes.
SLEEPY = '''
"""A policy that wakes itself before it does anything."""
from gridsched import Allocate, Scheduler, Traits, WakeAt


class Sleepy(Scheduler):
    """It waits."""

    traits = Traits(trigger="event", parallel=True, shares=True)

    def prepare(self, system, rng):
        """Forget the last run."""
        self.left_ = 4

    def schedule(self, state):
        """Wake four times, then begin the one job."""
        self.left_ -= 1
        if self.left_ > 0:
            return [WakeAt(state.now + 1.0)]
        return [Allocate(int(task), [0]) for task in state.waiting()]
'''
TWO = platform_text(
    '<zone id="z" routing="Full">'
    + host_xml("a1", speed="2f,1f", watts="10:10:50,5:5:20", extra=' core="4"')
    + host_xml("a2", speed="2f,1f", watts="10:10:90,5:5:20", extra=' core="4"')
    + "</zone>"
)
#: The log's jobs, the first three of one cluster and the others of another.
CLUSTERS = "\n".join(
    f"{name}|{line}" for name, line in zip(["Cluster", *["north"] * 3, *["south"] * 3], SACCT.splitlines(), strict=True)
)
FILES = {
    "log.sacct": SACCT,
    "clusters.sacct": CLUSTERS,
    "slurm.conf": CONF,
    "two.xml": TWO,
    "one.toml": '[[partition]]\nname = "a"\nnodes = ["a2", "a1"]\nmax_time_s = 1500\n',
    "bag.csv": EX_A_TASKS,
    "bytes.csv": "id,flops,input_bytes,output_bytes\n1,100,10,5\n2,300,0,0\n",
    "star.xml": star_xml(hosts=3),
    "half.xml": deployment_xml("m", ["h2"]),
    "a1.xml": deployment_xml("a1", ["a2"]),
    "prices.csv": "time_s,price,energy_cost_per_kwh\n0,5,0.1\n300,6,9.5\n",
    "dear.csv": "time_s,energy_cost_per_kwh\n0,0.2\n300,0.1\n",
    "dark.csv": "time_s,price,energy_cost_per_kwh\n0,0,900\n300,9,0.001\n",
    "costs.csv": "time_s,energy_cost_per_kwh\n0,0.1\n300,0.2\n",
    "events.csv": "time_s,event,what\n30,cancel,4\n",
    "carbon.csv": "host,time_s,g_per_kwh\n*,0,900\n*,700,10\n",
    "forecast.csv": "host,time_s,g_per_kwh\n*,0,10\n*,700,900\n",
    "hours.csv": "time,value\n2026-03-01T23:00:00Z,100\n2026-03-02T00:00:00Z,500\n2026-03-02T01:00:00Z,900\n"
    "2026-03-02T03:00:00Z,300\n2026-03-02T04:00:00Z,300\n",
    "sleepy.py": SLEEPY,
    "same.sacct": SAME,
    "dst.sacct": SAME.replace("02T00:00", "29T00:30", 3).replace("02T00:20", "29T03:30"),
    "plain.jobs.csv": "id,submit_time_s,run_time_s,nodes,also\n1,0,10,1,1\n2,0,10,1,2\n",
    "measured.jobs.csv": "id,submit_time_s,run_time_s,nodes,node_power_w\n1,0,10,1,150\n2,0,10,1,160\n",
    "green.csv": "Rank,Name,Year,Rmax,Power (kW)\n1,a,2020,100,1\n2,b,2021,300,2\n",
    "read.dax": '<adag><job id="a" name="a" runtime="3"><uses file="x" link="input" size="5"/></job></adag>',
    "one.sacct": "\n".join(SACCT.splitlines()[:2]) + "\n",
    "files.csv": "file,size_bytes,location\ngenome,1000,A\n",
    "data.csv": "id,flops,input_files\n1,3000,genome\n2,3000,\n",
    "profit.toml": 'kind = "profit"\ntasks = 40\ntask_types = 3\nmachine_types = 2\nmachines_per_type = 2\n',
    "jobs.swf": "; MaxProcs: 4\n1 0 -1 100 1 -1 -1 2 100 -1 1 1 7 -1 -1 -1 -1 -1\n",
    "jobs.jobs.csv": "id,submit_time_s,run_time_s,nodes,profile,also\n1,0,10,1,stencil,2\n2,0,10,2,stencil,1\n",
    "small.toml": 'name = "small"\ndriver = "reference"\nschedulers = ["wq", "mct"]\nplatform = "ex_a.xml"\n'
    'workload = { generator = "bag", tasks = 5, mean_flops = 1000 }\n',
    "claims.py": "CLAIMS = []\n",
    "policy.toml": 'name = "small"\nclaims = "claims.py"\ndriver = "reference"\nschedulers = ["EnergyDelay"]\n'
    'platform = "ex_a.xml"\n'
    'policies = ["energy_delay.py"]\nworkload = { generator = "bag", tasks = 5, mean_flops = 1000 }\n',
    "table.csv": "name,rmax_gflops,power_kw,cores\na,100,1,4\nb,300,2,8\n",
}
#: Files that come with gridsched, by the names that they have here.
SHIPPED = {
    **{
        name: f"examples/{name}"
        for name in (
            "utility_small.toml",
            "energy_delay.py",
            "diamond.dax",
            "live_slurm.conf",
            "two_sites.xml",
            "two_sites_day.csv",
            "sites.csv",
            "profit_etc.csv",
            "profit_apc.csv",
            "profit_counts.csv",
            "scontrol.txt",
            "bag.toml",
            "workflow.toml",
            "workflow.edges.csv",
            "workflow.tasks.csv",
            "communicating.jobs.csv",
            "communicating.xml",
            "profiles.toml",
        )
    },
    **{name: f"platforms/{name}" for name in ("ex_a.xml", "green500.csv", "ex_a.csv")},
}


@dataclass(frozen=True)
class Probe:
    """Calls of a command without and with an option, in words; new files begin with ``out``.

    Attributes
    ----------
    base : str
        Of both calls; a name of `BASES`, or words.
    words : str
        The option with its value.
    also : str
        Further words of both calls.
    """

    base: str
    words: str
    also: str = ""


BASES = {
    "equal": "--workload same.sacct --nodes 2 --power 10:10:50 --driver reference --schedulers fcfs",
    "same": "--workload same.sacct --nodes 1 --driver reference",
    "sleepy": "--workload one.sacct --slurm-conf slurm.conf --driver reference",
    "paying": "--workload profit.toml --schedulers lp_rolling",
    "log": "--workload log.sacct --slurm-conf slurm.conf --driver reference",
    "nodes": "--workload log.sacct --nodes 3 --driver reference",
    "two": "--workload log.sacct --platform two.xml --driver reference",
    "shared": "--workload log.sacct --platform two.xml --allocation cores --driver reference",
    "bag": "--platform ex_a.xml --workload bag.csv --driver reference",
    "bytes": "--platform star.xml --workload bytes.csv",
    "utility": "--workload utility_small.toml --driver reference",
}
FCFS, EASY = "--schedulers fcfs", "--schedulers easy_backfilling"
OFF = "--schedulers idle_off --set scheduler=easy_backfilling --set timeout_s=10"
#: Of 46,400 J that the first two jobs would draw.
BUDGET = "--budget-period-s 1000 --energy-budget-j 4.5e4"
MONEY = "--budget-period-s 1000 --money-budget 0.0022 --budget-prices costs.csv"
PRICE = "--price 10 --energy-cost 1e-6"
#: A bag that earns 10 for energy that costs 0.0008.
PAID = "--price 10 --energy-cost 1e-9"
GREEN = (
    "--schedulers wait_for_green --set scheduler=fcfs --set forecast=table --carbon carbon.csv --carbon-period-s 1400"
)
HOURS = "--carbon hours.csv --carbon-columns time=time,value=value"

#: Options that runs have in common, by the commands `run`, `compare`, `beside` and `validate`.
OF_RUNS: dict[str, tuple[Probe, ...]] = {
    "--platform": (Probe("log", "--platform two.xml", FCFS),),
    "--workload": (Probe("--slurm-conf slurm.conf", "--workload log.sacct", FCFS),),
    "--set": (Probe("log", "--set order=shortest", EASY),),
    "--batsim-start": (Probe("log", "--batsim-start true", FCFS),),
    "--files": (Probe("log", "--files files.csv", FCFS),),
    "--seed": (Probe("log", "--seed 3", f"{FCFS} --failures mtbf=500,mttr=50"),),
    "--nodes-from": (Probe("nodes", "--nodes-from ReqNodes", FCFS),),
    "--procs-per-node": (Probe("nodes", "--procs-per-node 4", f"{FCFS} --nodes-from AllocCPUS"),),
    "--cluster": (Probe("--workload clusters.sacct --nodes 3 --driver reference", "--cluster north", FCFS),),
    "--columns": (Probe("log", "--columns nodes=also", FCFS),),
    "--nodes": (Probe("nodes", "--nodes 2", FCFS),),
    "--allocation": (Probe("two", "--allocation cores", FCFS),),
    "--partitions": (Probe("shared", "--partitions one.toml", f"{FCFS} --seed 0"),),
    "--slurm-conf": (Probe("two", "--slurm-conf slurm.conf", FCFS),),
    "--profiles": (Probe("log", "--profiles profiles.toml", FCFS),),
    "--requests": (Probe("log", "--requests exact", f"{EASY} --walltime kill"),),
    "--outcomes-from": (Probe("log", "--outcomes-from run", FCFS),),
    "--log-zone": (Probe("log", "--log-zone +01:00", f"{FCFS} --maintenance 2026-03-02T00:20+01:00/00:30+01:00"),),
    "--boot": (Probe("nodes", "--boot 30:150", OFF),),
    "--shutdown": (Probe("nodes", "--shutdown 30:150", OFF),),
    "--mapping-interval-s": (Probe("log", "--mapping-interval-s 70", FCFS),),
    "--mapping-events": (Probe("same", "--mapping-events event", f"{FCFS} --set order=shortest"),),
    "--walltime": (Probe("log", "--walltime kill", FCFS),),
    "--pending-slots": (
        Probe("log", "--pending-slots 1", FCFS),
        Probe("utility", "--pending-slots 3", "--schedulers max_max_upe"),
    ),
    "--energy-budget-j": (Probe("equal", "--energy-budget-j 4.5e4", "--budget-period-s 1000"),),
    "--budget-period-s": (Probe("equal", "--budget-period-s 500", BUDGET),),
    "--first-period-start-s": (Probe("equal", "--first-period-start-s 400", BUDGET),),
    "--budget-enforcement": (Probe("equal", "--budget-enforcement stop", BUDGET),),
    "--budget-carry-over": (Probe("equal", "--budget-carry-over --budget-periods 3", BUDGET),),
    "--budget-periods": (Probe("equal", "--budget-periods 3", f"{BUDGET} --budget-carry-over --budget-periods 2"),),
    "--money-budget": (Probe("equal", "--money-budget 0.005", MONEY),),
    "--budget-prices": (Probe("equal", "--budget-prices dear.csv", MONEY),),
    "--budget-prices-period-s": (Probe("equal", "--budget-prices-period-s 400", MONEY),),
    "--carbon-budget-g": (Probe("equal", "--carbon-budget-g 4.5", "--budget-period-s 1000 --carbon 360"),),
    "--horizon-s": (Probe("log", "--horizon-s 500", FCFS),),
    "--charge-mapping-time": (Probe("log", "--charge-mapping-time", FCFS),),
    "--parked-pstate": (Probe("two", "--parked-pstate 1", FCFS),),
    "--power-cap-w": (Probe("two", "--power-cap-w 70", FCFS),),
    "--maintenance": (Probe("log", "--maintenance a1=100:5000", FCFS),),
    "--on-failure": (Probe("log", "--on-failure failed", f"{FCFS} --failures mtbf=500,mttr=50"),),
    "--placement": (Probe("shared", "--placement spread", FCFS),),
    "--max-idle-wakeups": (Probe("sleepy", "--max-idle-wakeups 2", "--schedulers sleepy.py"),),
    "--driver": (
        Probe("two", "--driver simgrid", f"{FCFS} --cfg maxmin/precision:1e-9"),
        Probe("two", "--driver reference", FCFS),
    ),
    "--network": (
        Probe("bytes", "--network none", "--schedulers wq"),
        Probe("two", "--network platform", f"{FCFS} --driver simgrid"),
    ),
    "--traffic-step-s": (Probe("two", "--traffic-step-s 5", FCFS),),
    "--deployment": (
        Probe("bytes", "--deployment half.xml", "--schedulers wq"),
        Probe("two", "--deployment a1.xml", f"{FCFS} --driver simgrid"),
    ),
    "--pstate": (Probe("two", "--pstate 1", FCFS),),
    "--hosts-off": (Probe("two", "--hosts-off a1", FCFS),),
    "--power": (Probe("log", "--power 10:10:50", FCFS),),
    "--master": (Probe("two", "--master a1", FCFS),),
    "--failures": (Probe("log", "--failures mtbf=500,mttr=50", FCFS),),
    "--events": (Probe("log", "--events events.csv", FCFS),),
    "--execution-mode": (
        Probe("bytes", "--execution-mode maestro", "--schedulers wq"),
        Probe("two", "--execution-mode maestro", f"{FCFS} --driver simgrid"),
    ),
    "--cfg": (Probe("two", "--cfg host/model:nothing", f"{FCFS} --driver simgrid"),),
    "--log": (Probe("two", "--log root.thresh:info", f"{FCFS} --driver simgrid"),),
    "--idle-attribution": (
        Probe("log", "--idle-attribution node", f"{FCFS} --group-by user"),
        Probe("log", "--idle-attribution node", FCFS),
    ),
    "--price": (Probe("log", "--price 10", FCFS), Probe("paying", "--price 1e-9", PAID)),
    "--energy-cost": (
        Probe("log", "--energy-cost 1e-6", f"{FCFS} --price 10"),
        Probe("paying", "--energy-cost 1e-4", PAID),
    ),
    "--pue": (Probe("log", "--pue 2", f"{FCFS} {PRICE}"), Probe("paying", "--pue 1e6", PAID)),
    "--overhead": (Probe("log", "--overhead 2", f"{FCFS} {PRICE}"), Probe("paying", "--overhead 1e3", PAID)),
    "--wear-per-s": (Probe("log", "--wear-per-s 2", f"{FCFS} {PRICE}"), Probe("paying", "--wear-per-s 1", PAID)),
    "--depreciation-per-s": (Probe("log", "--depreciation-per-s 2", f"{FCFS} {PRICE}"),),
    "--prices": (Probe("log", "--prices prices.csv", f"{FCFS} --price 10"), Probe("paying", "--prices dark.csv", PAID)),
    "--prices-period-s": (
        Probe("log", "--prices-period-s 600", f"{FCFS} --price 10 --prices prices.csv"),
        Probe("paying", "--prices-period-s 600", f"{PAID} --prices dark.csv"),
    ),
    "--carbon": (Probe("log", "--carbon 360", FCFS),),
    "--carbon-period-s": (Probe("log", "--carbon-period-s 900", f"{FCFS} --carbon carbon.csv"),),
    "--carbon-pue": (Probe("log", "--carbon-pue 2", f"{FCFS} --carbon 360"),),
    "--carbon-columns": (
        Probe(
            "log",
            "--carbon-columns time=time,value=value",
            f"{FCFS} --carbon hours.csv --carbon-fill hold --log-zone UTC",
        ),
    ),
    "--carbon-fill": (Probe("log", "--carbon-fill hold", f"{FCFS} {HOURS} --log-zone UTC"),),
    "--carbon-start": (Probe("log", "--carbon-start 2026-03-02T01:00:00Z", f"{FCFS} {HOURS} --carbon-fill hold"),),
    "--carbon-forecast": (Probe("log", "--carbon-forecast forecast.csv", GREEN),),
    "--timeout-s": (Probe("log", "--timeout-s 1e-4", FCFS),),
}


#: Options of output that many commands have: what is tried is made from the words of the command.
GENERIC = ("--json", "--quiet", "--force")
NOTHING_ELSE = "results do not depend on the number of processes, only the wall time does"

OWN: dict[str, dict[str, Probe | str]] = {
    "run": {
        "--scheduler": Probe("log", "--scheduler easy_backfilling", "--scheduler fcfs"),
        "--export": Probe("log", "--export out", FCFS),
        "--group-by": Probe("log", "--group-by user", FCFS),
        "--output": Probe("log", "-o out.csv", FCFS),
    },
    "compare": {
        "--schedulers": Probe("log", "--schedulers fcfs"),
        "--sort": Probe("bag", "--sort energy_model_j", "--schedulers wq,lecsa"),
        "--metric": Probe("log", "--metric ed=energy_j*makespan_s", FCFS),
        "--plot": Probe("log", "--plot out.png", FCFS),
        "--group-by": Probe("log", "--group-by user", FCFS),
        "--output": Probe("log", "-o out.csv", FCFS),
    },
    "beside": {
        "--schedulers": Probe("log", "--schedulers fcfs"),
        "--draws": Probe("log", "--draws 2", FCFS),
        "--plot": Probe("log", "--plot out.png", FCFS),
        "--output": Probe("log", "-o out.csv", FCFS),
    },
    "validate": {
        "--schedulers": Probe("bag", "--schedulers wq"),
        "--output": Probe("bag", "-o out.csv", "--schedulers wq"),
    },
}

_TABLE = "ex_a.csv -o out.xml"
_MADE = ("--hosts 6", "--clusters 2 --cluster-bandwidth 1GBps --cluster-latency 1us")
OWN["platform from-table"] = {
    "--output": Probe("ex_a.csv", "-o out.xml"),
    "--join": Probe(f"{_TABLE}", "--join top.csv"),
    "--year": Probe("green.csv -o out.xml", "--year 2020"),
    "--trust": Probe("green500.csv -o out.xml", "--trust nothing"),
    "--hosts": Probe(_TABLE, "--hosts 6"),
    "--rows": Probe(_TABLE, "--rows 1-2"),
    "--name-pattern": Probe(_TABLE, "--name h1"),
    "--speed-levels": Probe(_TABLE, "--speed-levels 6000,8000,10000"),
    "--speed-uniform": Probe(_TABLE, "--speed-uniform 100:200"),
    "--efficiency": Probe(_TABLE, "--efficiency real", "--speed-levels 10,20,30"),
    "--idle-share": Probe("green500.csv -o out.xml", "--idle-share 0.1"),
    "--idle-power-w": Probe("green500.csv -o out.xml", "--idle-power-w 10"),
    "--off-power-w": Probe(_TABLE, "--off-power-w 3"),
    "--embodied-kg": Probe(_TABLE, "--embodied-kg 1000"),
    "--lifetime-years": Probe(_TABLE, "--lifetime-years 9", "--embodied-kg 1000"),
    "--memory": Probe(_TABLE, "--memory 64G"),
    "--resources": Probe(_TABLE, "--resources gpu:4"),
    "--unit-power": Probe(_TABLE, "--unit-power gpu:25:300", "--resources gpu:4"),
    "--pstates": Probe("green500.csv -o out.xml", "--pstates '1:1;0.8:0.6'"),
    "--cores": Probe(_TABLE, "--cores 4"),
    "--clusters": Probe(_TABLE, "--clusters 2"),
    "--cluster-bandwidth": Probe(_TABLE, "--cluster-bandwidth 2GBps", "--clusters 2"),
    "--cluster-latency-s": Probe(_TABLE, "--cluster-latency 9us", "--clusters 2"),
    "--host-bandwidth": Probe(_TABLE, "--host-bandwidth 2GBps"),
    "--host-latency-s": Probe(_TABLE, "--host-latency 9us", "--host-bandwidth 2GBps"),
    "--master": Probe(_TABLE, "--master"),
    "--master-bandwidth": Probe(_TABLE, "--master-bandwidth 2GBps", "--master"),
    "--master-latency-s": Probe(_TABLE, "--master-latency 9us", "--master --master-bandwidth 2GBps"),
    "--seed": Probe(_TABLE, "--seed 3", "--speed-uniform 100:200"),
}
OWN["platform from-slurm"] = {
    "--output": Probe("slurm.conf", "-o out.xml"),
    "--partitions": Probe("slurm.conf -o out.xml", "--partitions out2.toml"),
    "--power": Probe("slurm.conf -o out.xml", "--power 10:10:50"),
    "--unit-power": Probe("scontrol.txt -o out.xml", "--unit-power gpu:25:300"),
    "--speed": Probe("slurm.conf -o out.xml", "--speed 3Gf"),
}
OWN["platform add-power"] = {
    "--power": Probe("ex_a.xml -o out.xml --power 1:1:2", "--power 10:10:50"),
    "--output": Probe("ex_a.xml --power 1:1:2", "-o out.xml"),
}
OWN["platform check"] = {"--deployment": Probe("star.xml", "--deployment half.xml")}
_OF_LOGS = {
    "--nodes-from": Probe("LOG log.sacct", "--nodes-from ReqNodes"),
    "--procs-per-node": Probe("LOG log.sacct", "--procs-per-node 4", "--nodes-from AllocCPUS"),
    "--cluster": Probe("LOG clusters.sacct", "--cluster north"),
    "--columns": Probe("LOG plain.jobs.csv", "--columns nodes=also"),
    "--nodes": Probe("LOG log.sacct", "--nodes 1"),
    "--allocation": Probe("LOG log.sacct", "--allocation cores", "--nodes-from ReqNodes --procs-per-node 2"),
    "--partitions": Probe("LOG log.sacct", "--partitions one.toml"),
    "--slurm-conf": Probe("LOG log.sacct", "--slurm-conf slurm.conf"),
    "--profiles": Probe("LOG jobs.jobs.csv", "--profiles profiles.toml"),
    "--requests": Probe("LOG log.sacct", "--requests twice"),
    "--outcomes-from": Probe("LOG log.sacct", "--outcomes-from run"),
    "--log-zone": Probe("LOG dst.sacct", "--log-zone Europe/Berlin"),
    "--boot": Probe("LOG log.sacct", "--boot 3:4"),
    "--shutdown": Probe("LOG log.sacct", "--shutdown 3:4"),
}


def _of_logs(base: str) -> dict[str, Probe | str]:
    """Return the probes of the options of logs for a command that ends so."""
    return {
        name: Probe(each.base.removeprefix("LOG ") + base, each.words, each.also) for name, each in _OF_LOGS.items()
    }


OWN["workload import"] = _of_logs(" -o out.csv") | {
    "--output": Probe("log.sacct", "-o out.csv"),
    "--report": Probe("log.sacct -o out.csv", "--report out.json"),
    "--speed": Probe("log.sacct -o out.csv", "--speed 3e9"),
}
OWN["workload convert"] = _of_logs(" -o out.swf") | {
    "--output": Probe("log.sacct", "-o out.swf"),
    "--report": Probe("log.sacct -o out.swf", "--report out.json"),
}
OWN["workload describe"] = _of_logs("") | {
    "--files": Probe("data.csv", "--files files.csv"),
    "--power": Probe("measured.jobs.csv", "--power 1:2:3"),
    "--plot": Probe("log.sacct", "--plot out.png"),
}
_BAG = "-o out.csv --tasks 5 --mean-flops 100"
OWN["workload generate"] = {
    "--output": Probe("--tasks 5 --mean-flops 100", "-o out.csv"),
    "--kind": Probe(_BAG, "--kind rigid_jobs"),
    "--tasks": Probe(_BAG, "--tasks 6"),
    "--mean-flops": Probe(_BAG, "--mean-flops 200"),
    "--heterogeneity": Probe(_BAG, "--heterogeneity 1"),
    "--seed": Probe(_BAG, "--seed 3", "--heterogeneity 1"),
    "--input-bytes": Probe(_BAG, "--input-bytes 3"),
    "--output-bytes": Probe(_BAG, "--output-bytes 3"),
    "--submit-from-s": Probe(_BAG, "--submit-from-s 3", "--submit-until-s 9"),
    "--submit-until-s": Probe(_BAG, "--submit-until-s 3"),
}
OWN |= {
    f"plot {kind}": {"--output": Probe(f"export-{kind}", "-o out.png")}
    for kind in ("gantt", "graph", "power", "trace", "prices", "carbon", "traffic")
}
OWN["plot trace"]["--step-s"] = Probe("export-trace -o out.png", "--step-s 7")
OWN["plot traffic"]["--beside"] = Probe("export-traffic -o out.png", "--beside export-traffic")
OWN["view"] = {"--output": Probe("export-gantt", "-o out.html")}
OWN["schedulers"] = {}
OWN["example list"] = {}
OWN["example copy"] = {"--to": Probe("examples/ex_a.csv", "--to out")}
OWN["kernels compile"] = {}
OWN["reproduce"] = {
    "--replicates": Probe("small.toml --store out -o out.html", "--replicates 2"),
    "--store": Probe("small.toml -o out.html", "--store out2"),
    "--workers": NOTHING_ELSE,
    "--output": Probe("small.toml --store out", "-o out2.html"),
    "--inputs": Probe("small.toml --store out -o out.html", "--inputs ."),
    "--only": Probe("small.toml --store out -o out.html", "--only x"),
    "--trust": Probe("policy.toml --store out -o out.html", "--trust"),
    "--force": Probe("small.toml --store out -o out.html", "--force"),
    "--json": Probe("small.toml --store out -o out.html", "--json"),
}
OWN["study check"] = {
    "--samples": Probe("small.toml", "--samples 0"),
    "--workers": NOTHING_ELSE,
    "--timeout-s": Probe("small.toml", "--timeout-s 1e-5"),
    "--trust": Probe("policy.toml", "--trust"),
}
OWN["study run"] = {
    "--store": Probe("small.toml", "--store out"),
    "--workers": NOTHING_ELSE,
    "--only": Probe("small.toml --store out", "--only replicate>5"),
    "--timeout-s": Probe("small.toml --store out", "--timeout-s 1e-5"),
    "--retry-failed": Probe("small.toml --store failed", "--retry-failed"),
    "--records": Probe("small.toml --store out", "--records"),
    "--dask": Probe("small.toml --store out", "--dask nowhere"),
    "--dask-wait-s": Probe("small.toml --store out", "--dask-wait-s 1"),
    "--json-lines": Probe("small.toml --store out", "--json-lines"),
    "--trust": Probe("policy.toml --store out", "--trust"),
}
OWN["study rerun"] = {
    "--timeout-s": Probe("store RUN", "--timeout-s 1e-5"),
    "--trust": Probe("trusted TRUSTED", "--trust"),
}
OWN["study view"] = {
    "--output": Probe("store RUN", "-o out.html"),
    "--timeout-s": Probe("store RUN -o out.html", "--timeout-s 1e-5"),
    "--trust": Probe("trusted TRUSTED -o out.html", "--trust"),
}
OWN["study schema"] = {"--table": Probe("", "--table")}
OWN["study report"] = {
    "--output": Probe("store", "-o out.html"),
    "--study": Probe("store -o out.html", "--study nothing"),
    "--trust": Probe("trusted -o out.html", "--trust"),
}
OWN["study claims"] = {
    "--study": Probe("store", "--study nothing"),
    "--trust": Probe("trusted", "--trust"),
    "--output": Probe("store", "-o out.md"),
}
_CSV = "--etc profit_etc.csv --apc profit_apc.csv --counts profit_counts.csv"
_MONEY = {
    "--gamma": Probe("--workload profit.toml", "--gamma 2", "--gamma 1.2"),
    "--workload": Probe("--platform ex_a.xml", "--workload bag.csv"),
    "--platform": Probe("--workload bag.csv", "--platform ex_a.xml"),
    "--etc": Probe("--apc profit_apc.csv --counts profit_counts.csv", "--etc profit_etc.csv"),
    "--apc": Probe("--etc profit_etc.csv --counts profit_counts.csv", "--apc profit_apc.csv"),
    "--counts": Probe("--apc profit_apc.csv --etc profit_etc.csv", "--counts profit_counts.csv"),
    "--machines": Probe(_CSV, "--machines machines.csv", "--gamma 1.2"),
    "--plot": Probe("--workload profit.toml", "--plot out.png", "--gamma 1.2"),
    "--output": Probe("--workload profit.toml", "-o out.csv", "--gamma 1.2"),
    "--pstate": Probe("--platform two.xml --workload bag.csv", "--pstate 1", "--price 1000 --energy-cost 1e-3/J"),
    "--price": Probe("--workload profit.toml", "--price 2000", PRICE),
    "--energy-cost": Probe("--workload profit.toml", "--energy-cost 2e-6", PRICE),
    "--pue": Probe("--workload profit.toml", "--pue 2", PRICE),
    "--overhead": Probe("--workload profit.toml", "--overhead 2", PRICE),
    "--wear-per-s": Probe("--workload profit.toml", "--wear-per-s 1e-4", PRICE),
    "--depreciation-per-s": Probe("--workload profit.toml", "--depreciation-per-s 1e-4", PRICE),
    "--prices": Probe("--workload profit.toml", "--prices prices.csv", PRICE),
    "--prices-period-s": Probe("--workload profit.toml", "--prices-period-s 7", PRICE),
}
OWN["optimize pareto"] = _MONEY | {"--points": Probe("--workload profit.toml", "--points 2")}
OWN["optimize profit"] = {name: Probe(each.base, each.words, each.also or PRICE) for name, each in _MONEY.items()} | {
    "--power-cap-w": Probe("--workload profit.toml", "--power-cap-w 100", PRICE),
    "--least-rate-per-s": Probe("--workload profit.toml", "--least-rate-per-s 7.6e-4", "--price 82 --energy-cost 1e-4"),
}
_SITES = "--platform two_sites.xml --workload two_sites_day.csv --carbon sites.csv"
OWN["optimize carbon"] = {
    "--platform": Probe("--workload two_sites_day.csv --carbon sites.csv", "--platform two_sites.xml"),
    "--workload": Probe("--platform two_sites.xml --carbon sites.csv", "--workload two_sites_day.csv"),
    "--within-s": Probe(_SITES, "--within-s 10800"),
    "--output": Probe(_SITES, "-o out.csv"),
    "--pstate": Probe(_SITES, "--pstate 1"),
    "--carbon": Probe(_SITES, "--carbon 360"),
    "--carbon-period-s": Probe(_SITES, "--carbon-period-s 10800"),
    "--carbon-pue": Probe(_SITES, "--carbon-pue 2"),
    "--carbon-columns": Probe(_SITES, "--carbon-columns time=time,value=value"),
    "--carbon-fill": Probe(_SITES, "--carbon-fill hold"),
    "--carbon-start": Probe(_SITES, "--carbon-start 2026-03-02T00:00:00Z"),
    "--carbon-forecast": Probe(_SITES, "--carbon-forecast sites.csv"),
}
OWN["workflow import"] = {
    "--output": Probe("diamond.dax --reference-speed 1e9", "-o out.toml"),
    "--reference-speed": Probe("diamond.dax -o out.toml", "--reference-speed 3e9"),
    "--inputs-from": Probe("read.dax --reference-speed 1e9 -o out.toml", "--inputs-from disk"),
    "--several-cores": Probe("diamond.dax --reference-speed 1e9 -o out.toml", "--several-cores nothing"),
}
#: Commands whose files the option `--force` lets be written again, and whose lines `--quiet` holds back, in words.
WRITING = {
    "run": f"{BASES['log']} --scheduler fcfs -o out.csv",
    "compare": f"{BASES['log']} {FCFS} -o out.csv",
    "beside": f"{BASES['log']} {FCFS} -o out.csv",
    "validate": "--platform ex_a.xml --workload bag.csv --schedulers wq -o out.csv",
    "schedulers": "",
    "example list": "",
    "example copy": "examples/ex_a.csv --to out",
    "platform from-table": _TABLE,
    "platform from-slurm": "slurm.conf -o out.xml",
    "platform add-power": "ex_a.xml -o out.xml --power 1:1:2",
    "platform check": "ex_a.xml",
    "workload import": "log.sacct -o out.csv",
    "workload convert": "log.sacct -o out.swf",
    "workload generate": _BAG,
    "workload describe": "log.sacct --plot out.png",
    "plot gantt": "export-gantt -o out.png",
    "plot graph": "export-graph -o out.png",
    "plot power": "export-power -o out.png",
    "plot trace": "export-trace -o out.png",
    "plot prices": "export-prices -o out.png",
    "plot carbon": "export-carbon -o out.png",
    "plot traffic": "export-traffic -o out.png",
    "view": "export-gantt -o out.html",
    "reproduce": "small.toml --store out -o out.html",
    "study check": "small.toml --samples 0",
    "study run": "small.toml --store out",
    "study rerun": "store RUN",
    "study view": "store RUN -o out.html",
    "study report": "store -o out.html",
    "study claims": "store -o out.md",
    "kernels compile": "",
    "optimize pareto": "--workload profit.toml -o out.csv",
    "optimize profit": "--workload profit.toml --gamma 1.2 -o out.csv",
    "optimize carbon": f"{_SITES} -o out.csv",
    "workflow import": "diamond.dax --reference-speed 1e9 -o out.toml",
}
_EXPORTED = "run --platform ex_a.xml --workload bag.csv --driver reference --quiet"
#: Calls that make exports and stores which others read.
MADE = (
    *(f"{_EXPORTED} --scheduler wqr --export export-{kind}" for kind in ("gantt", "power")),
    f"{_EXPORTED} --scheduler wqr --carbon 360 --export export-carbon",
    "run --workload workflow.toml --platform ex_a.xml --scheduler mct --network none --quiet --export export-graph",
    "run --workload profit.toml --scheduler lp_rolling --price 10 --prices dark.csv --quiet --export export-prices",
    "run --workload utility_small.toml --scheduler max_max_upe --driver reference --quiet --export export-trace",
    "run --workload communicating.jobs.csv --profiles profiles.toml --platform communicating.xml --scheduler fcfs "
    "--driver reference --traffic-step-s 1 --quiet --export export-traffic",
    "study run small.toml --store store --workers 1 --quiet",
    "study run policy.toml --store trusted --workers 1 --trust --quiet",
    "study run small.toml --store failed --workers 1 --quiet --timeout-s 1e-5",
)
