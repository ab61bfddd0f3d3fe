"""A Slurm that is started here and now, beside scheduler slurm: root and the packages of Debian, some 15 minutes."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import live_slurm
import pytest

from gridsched import Scenario, run
from gridsched.analysis.beside_log import beside_itself, beside_log, read_schedule, sampled_within_seconds
from gridsched.runs.scenario_maker import load
from gridsched.workloads.traces.trace_options import TraceOptions

SHARES = {account: shares for account, (shares, _) in live_slurm.ACCOUNTS.items()}
USERS = {f"{account}/{user}": 1 for account, (_, users) in live_slurm.ACCOUNTS.items() for user in users}
#: How far makespan and mean wait may be off, and the least rank correlation of waits: aims of ours. Two runs of one
#: mix on the real Slurm had waits with a rank correlation of 0.95, and means 4 % apart.
AIMS = (0.03, 0.10, 0.90)

#: Mixes that miss these aims, by what we measured: shown as misses, see docs/real_slurm.md.
MISSES = (
    ("tiers", "mean wait 10 % low, ranks of waits at 0.87"),
    ("shares", "mean wait 14 % high, ranks of waits at 0.87: single starts in the first minute"),
)


@pytest.mark.long
@pytest.mark.parametrize(
    "kind",
    [
        "full",
        *(pytest.param(k, marks=pytest.mark.xfail(raises=AssertionError, strict=False, reason=w)) for k, w in MISSES),
    ],
)
def test_a_fresh_mix_beside_a_live_slurm(tmp_path: Path, kind: str):
    """Submit a mix, read its accounting, and hold 20 draws of slurm beside it; nothing is fitted."""
    if (reason := live_slurm.why_not()) is not None:
        pytest.skip(reason)
    live_slurm.install()
    log = tmp_path / f"{kind}.sacct"
    conf = tmp_path / "slurm.conf"
    with live_slurm.live_slurm() as slurm:
        slurm.play(live_slurm.mix(kind, seed=["full", "tiers", "shares"].index(kind) + 1), log)
        began_s = slurm.began_s
        conf.write_text(slurm.conf.read_text())
    first = min(row.split("|")[5] for row in log.read_text().splitlines()[1:])
    begin_s = datetime.fromisoformat(first).replace(tzinfo=UTC).timestamp()
    order = f"multifactor(first_calc_s={began_s - begin_s}, account_shares={SHARES}, shares={USERS | {'/root': 1}})"
    scenario = load(
        Scenario(
            None, log, "slurm", parameters={"order": order}, driver="reference", trace=TraceOptions(slurm_conf=conf)
        )
    )
    results = [run(sampled_within_seconds(scenario, seed)) for seed in range(20)]
    own = beside_itself(scenario, read_schedule(log))
    found = beside_log("slurm", results, own.wait_s).row
    makespan, wait, ranks = AIMS
    both = f"{kind}: {found} beside {own.row}"
    assert found["makespan_s"] == pytest.approx(own.row["makespan_s"], rel=makespan), both
    assert found["mean_wait_s"] == pytest.approx(own.row["mean_wait_s"], rel=wait), both
    assert found["rank_correlation"] >= ranks, both


def test_mixes_are_drawn_with_a_seed():
    """The same jobs each time; each kind has what it is there for."""
    for kind in ("full", "tiers", "shares"):
        assert live_slurm.mix(kind, 1) == live_slurm.mix(kind, 1) != live_slurm.mix(kind, 2)
    assert {job.partition for job in live_slurm.mix("tiers", 1)} == {"normal", "express"}
    assert len({job.user for job in live_slurm.mix("shares", 1)}) == 5
