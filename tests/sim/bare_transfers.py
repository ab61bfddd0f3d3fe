"""A program of SimGrid alone: it sends data by a plan, and prints when each transfer began and ended [s].

``python bare_transfers.py PLANS``; the file is a list of [platform, options, plan] in JSON, of which each runs in a
process of its own, since SimGrid has one engine a process. A plan is a list of [begin, source, target, bytes, cancel],
whose last one is when the transfer is cancelled (null: never). A line of JSON for each plan lists begin, end, and the
bytes that were left at the end of each. It is null if SimGrid ended the process.
"""

import ctypes
import importlib.util
import json
import os
import sys
from pathlib import Path

origin = Path(importlib.util.find_spec("simgrid").origin)
for library in sorted(origin.parent.glob("libsimgrid.so.*"))[:1]:  # the wheel finds it so alone
    ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
import simgrid  # noqa: E402


def run(platform: str, options: list[str], plan: list) -> list:
    """Return begin, end and bytes left of each transfer of a plan."""
    engine = simgrid.Engine(["bare", "--log=root.thresh:error", *options])
    engine.load_platform(platform)
    seen = [None] * len(plan)

    def wait(k: int, begin: float, comm: simgrid.Comm, cancel: float | None) -> None:
        left = 0.0
        try:
            comm.wait() if cancel is None else comm.wait_until(cancel)
        except simgrid.TimeoutException:
            left = comm.remaining
            comm.cancel()
        seen[k] = begin, engine.clock, left

    def follow_the_plan() -> None:
        """Begin all from one actor: actors that wake at the same time do so in no order of the plan."""
        for k, (time, source, target, size_bytes, cancel) in sorted(enumerate(plan), key=lambda each: each[1][0]):
            simgrid.this_actor.sleep_until(time)
            comm = simgrid.Comm.sendto_init(engine.host_by_name(source), engine.host_by_name(target))
            comm.set_payload_size(size_bytes).start()
            engine.all_hosts[0].add_actor(f"transfer {k}", wait, k, engine.clock, comm, cancel)

    engine.all_hosts[0].add_actor("manager", follow_the_plan)
    engine.run()
    return seen


for each in json.loads(Path(sys.argv[1]).read_text()):
    ours, theirs = os.pipe()
    if not (child := os.fork()):
        os.write(theirs, json.dumps(run(*each)).encode())
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours) as answer:
        print(answer.read() or "null")  # noqa: T201
    os.waitpid(child, 0)
