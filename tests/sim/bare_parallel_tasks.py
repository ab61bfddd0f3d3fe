"""A program of SimGrid alone: it runs parallel tasks by a plan, and prints when each ends [s].

``python bare_parallel_tasks.py PLATFORM PLAN [OPTION ...]``; the file of the plan is a list of
[time, hosts, flops, bytes] in JSON. The second line is what each host has drawn at the end [J].
"""

import ctypes
import importlib.util
import json
import sys
from pathlib import Path

origin = Path(importlib.util.find_spec("simgrid").origin)
for library in sorted(origin.parent.glob("libsimgrid.so.*"))[:1]:  # the wheel finds it so alone
    ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
import simgrid  # noqa: E402

mapped = [line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "libsimgrid.so" in line]
c = ctypes.CDLL(mapped[0])
c.sg_host_by_name.restype = ctypes.c_void_p
c.sg_host_get_consumed_energy.argtypes = [ctypes.c_void_p]
c.sg_host_get_consumed_energy.restype = ctypes.c_double

platform, plan = sys.argv[1], json.loads(Path(sys.argv[2]).read_text())
engine = simgrid.Engine(["bare", "--cfg=host/model:ptask_L07", *sys.argv[3:]])
c.sg_host_energy_plugin_init()
engine.load_platform(platform)
host_named = {host.name: host for host in engine.all_hosts}
ends = [0.0] * len(plan)


def run_one(k: int, names: list[str], flops: list[float], size_bytes: list[float]) -> None:
    simgrid.this_actor.exec_init([host_named[name] for name in names], flops, size_bytes).start().wait()
    ends[k] = engine.clock


def follow_the_plan() -> None:
    me = simgrid.this_actor.get_host()
    for k, (time, *task) in enumerate(plan):
        simgrid.this_actor.sleep_until(time)
        me.add_actor(f"task {k}", run_one, k, *task)


engine.host_by_name("m").add_actor("manager", follow_the_plan)
engine.run()
print(json.dumps(ends))  # noqa: T201
