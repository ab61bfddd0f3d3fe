"""Make the accounting of a machine with three partitions, as 'sacct -P -X' writes it.

usage: python examples/make_sacct_log.py SEED FILE
"""

import sys
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

COLUMNS = (
    "JobIDRaw|User|Account|Partition|QOS|Submit|Start|End|ElapsedRaw|TimelimitRaw|AllocNodes|State|"
    "ConsumedEnergyRaw|SubmitLine"
)
#: nodes, share of the jobs, most nodes of a job, most minutes
PARTITIONS = {"batch": (96, 0.55, 64, 2880), "short": (16, 0.35, 8, 120), "large": (128, 0.10, 128, 1440)}
JOBS, DAYS = 600, 4.5
BEGIN = datetime(2025, 3, 3, 8)


def make(seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    users = [f"user{k:02}" for k in range(1, 13)]
    busy = rng.dirichlet(np.full(len(users), 0.5))  # two or three users submit most of the jobs
    watts = rng.uniform(110, 185, len(users))  # what a user's programs draw on a node
    submit_s = np.sort(rng.uniform(0, DAYS * 86_400, JOBS))
    lines = [COLUMNS]
    for job, submit in enumerate(submit_s, start=1001):
        name = str(rng.choice(list(PARTITIONS), p=[row[1] for row in PARTITIONS.values()]))
        _, _, most_nodes, most_minutes = PARTITIONS[name]
        user = int(rng.choice(len(users), p=busy))
        least = 33 if name == "large" else 1
        nodes = int(np.exp(rng.uniform(np.log(least), np.log(most_nodes))))
        seconds = int(np.clip(rng.lognormal(np.log(60 * most_minutes * 0.016), 1.2), 30, 60 * most_minutes))
        asked = int(min(most_minutes, 5 * np.ceil(seconds / 300 * rng.uniform(1, 6))))
        qos = "high" if rng.random() < 0.1 else "normal"
        start = BEGIN + timedelta(seconds=int(submit + rng.exponential(1800)))
        joules = int(nodes * seconds * watts[user] * rng.normal(1, 0.04))
        after = ""
        if job > 1001 and rng.random() < 0.05:
            after = f" --dependency=afterok:{job - int(rng.integers(1, min(10, job - 1000)))}"
        cells = (
            job,
            users[user],
            f"group{user % 4}",
            name,
            qos,
            f"{BEGIN + timedelta(seconds=int(submit)):%Y-%m-%dT%H:%M:%S}",
            f"{start:%Y-%m-%dT%H:%M:%S}",
            f"{start + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%S}",
            seconds,
            asked,
            nodes,
            "COMPLETED",
            joules,
            f"sbatch{after} job.sh",
        )
        lines.append("|".join(map(str, cells)))
    return lines


if __name__ == "__main__":
    Path(sys.argv[2]).write_text("\n".join(make(int(sys.argv[1]))) + "\n", encoding="utf-8")
