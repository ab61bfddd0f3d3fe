"""EASY backfilling as a program of its own that speaks Batsim's protocol: batsim_easy.py ADDRESS.

It listens at an address, receives the events, and answers which jobs start where; numbers of
hosts are interval sets, as "0-3 7". It needs pyzmq and nothing of gridsched.
"""

import json
import sys

import zmq


class Easy:
    """Queue, free hosts, and jobs that run: id -> (expected end [s], hosts)."""

    def __init__(self):
        self.queue, self.free, self.running = [], set(), {}

    def hear(self, now, kind, data):
        if kind == "SIMULATION_BEGINS":
            self.free = {host["id"] for host in data["compute_resources"]}
        elif kind == "JOB_SUBMITTED":
            self.queue.append(data["job"])
        elif kind == "JOB_COMPLETED":
            self.free |= self.running.pop(data["job_id"])[1]

    def starts(self, now):
        """Yield the jobs that start now: the head of the queue, then what does not delay it."""
        while self.queue and self.queue[0]["res"] <= len(self.free):
            yield self.start(self.queue[0], now)
        if not self.queue:
            return
        shadow, extra = self.reservation(now)
        for job in self.queue[1:]:
            ends_in_time = now + job["walltime"] <= shadow
            if job["res"] <= len(self.free) and (ends_in_time or job["res"] <= extra):
                extra -= 0 if ends_in_time else job["res"]
                yield self.start(job, now)

    def reservation(self, now):
        """Return when the head can start, and how many hosts are then left over."""
        available = len(self.free)
        ends = sorted((max(end, now), len(hosts)) for end, hosts in self.running.values())
        for k, (end, width) in enumerate(ends):
            available += width
            is_last = k + 1 == len(ends) or ends[k + 1][0] > end
            if is_last and available >= self.queue[0]["res"]:
                return end, available - self.queue[0]["res"]
        return float("inf"), 0

    def start(self, job, now):
        hosts = sorted(self.free)[: job["res"]]
        self.queue.remove(job)
        self.free -= set(hosts)
        self.running[job["id"]] = now + job["walltime"], set(hosts)
        data = {"job_id": job["id"], "alloc": " ".join(map(str, hosts))}
        return {"timestamp": now, "type": "EXECUTE_JOB", "data": data}


def main(address):
    socket, easy = zmq.Context().socket(zmq.REP), Easy()
    socket.bind(address)
    while True:
        message = json.loads(socket.recv())
        now, events = message["now"], message["events"]
        for event in events:
            easy.hear(now, event["type"], event["data"])
        socket.send_string(json.dumps({"now": now, "events": list(easy.starts(now))}))
        if events and events[-1]["type"] == "SIMULATION_ENDS":
            return


if __name__ == "__main__":
    main(sys.argv[1])
