"""A program of SimGrid alone: it carries out a plan and prints the energy of each host [J].

``python bare_simgrid.py PLATFORM PLAN``; the plan is a list of [time, verb, host, value] in JSON.
Each ``read`` prints what was drawn until then, and so does the end.
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

platform, plan = sys.argv[1], json.loads(sys.argv[2])
engine = simgrid.Engine(["bare"])
c.sg_host_energy_plugin_init()
engine.load_platform(platform)


def follow_the_plan() -> None:
    names = [host.name for host in engine.all_hosts]
    handles = [c.sg_host_by_name(name.encode()) for name in names]

    def report() -> None:
        print(json.dumps(dict(zip(names, map(c.sg_host_get_consumed_energy, handles), strict=True))))  # noqa: T201

    for time, verb, name, value in plan:
        simgrid.this_actor.sleep_until(time)
        host = engine.host_by_name(name)
        if verb == "execute":
            host.add_actor("task", simgrid.this_actor.execute, value)
        elif verb == "pstate":
            host.pstate = value
        elif verb == "off":
            host.turn_off()
        elif verb == "on":
            host.turn_on()
        elif verb == "read":
            report()
    report()
    simgrid.Actor.kill_all()


engine.host_by_name("m").add_actor("manager", follow_the_plan)
engine.run()
