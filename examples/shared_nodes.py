"""Make the log of a machine with three partitions, as `sacct -P -X` prints it.

Usage: python examples/shared_nodes.py > examples/shared_nodes.sacct
"""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np

SEED, JOBS = 1, 400
COLUMNS = "JobIDRaw|User|Account|Partition|QOS|Submit|Start|End|ElapsedRaw|TimelimitRaw"
COLUMNS += "|NNodes|AllocCPUS|ReqMem|AllocTRES|State"


def main() -> None:
    """Print the log."""
    rng = np.random.default_rng(SEED)
    time = datetime(2026, 3, 2, 8)
    print(COLUMNS)
    for number in range(1, JOBS + 1):
        time += timedelta(seconds=int(rng.exponential(150)))
        partition = str(rng.choice(["batch", "bigmem", "gpu"], p=[0.75, 0.1, 0.15]))
        user = f"u{rng.zipf(1.6) % 12:02}"
        run_s = int(np.clip(rng.lognormal(7.4, 1.3), 30, 80_000))
        limit = -(-int(run_s * rng.uniform(1.1, 4.0)) // 1800) * 30
        nodes, gpus = 1, 0
        if partition == "batch":
            nodes = int(rng.choice([1, 1, 1, 2, 4, 8]))
            cores = int(rng.choice([1, 2, 4, 8, 16, 32])) if nodes == 1 else 32
            memory = cores * int(rng.integers(1, 5))
        elif partition == "bigmem":
            cores = int(rng.choice([4, 8, 16]))
            memory = int(rng.choice([200, 400, 800]))
        else:
            gpus = int(rng.choice([1, 1, 2, 4]))
            cores, memory = 8 * gpus, 32 * gpus
        start = time + timedelta(seconds=int(rng.exponential(600)))
        tres = f"billing={nodes * cores},cpu={nodes * cores},mem={nodes * memory}G,node={nodes}"
        tres += f",gres/gpu={gpus}" if gpus else ""
        cells = [
            number,
            user,
            "physics" if user < "u06" else "biology",
            partition,
            "normal",
            time.isoformat(),
            start.isoformat(),
            (start + timedelta(seconds=run_s)).isoformat(),
            run_s,
            limit,
            nodes,
            nodes * cores,
            f"{memory}Gn",
            tres,
            "COMPLETED",
        ]
        print("|".join(map(str, cells)))


if __name__ == "__main__":
    main()
