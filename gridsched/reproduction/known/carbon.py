"""What waiting for green power saves, of the machine-learning jobs of "Let's wait awhile" (Middleware 2021)."""

from __future__ import annotations

import math
from pathlib import Path

from gridsched.model.carbon import Carbon
from gridsched.reproduction.known.cases import Case, Input, Row, Values
from gridsched.runs.run import run
from gridsched.scenario import Scenario
from gridsched.workloads.deferrable_jobs import DeferrableJobs, generate_deferrable_jobs

SOURCE = (
    "P. Wiesner, I. Behnke, D. Scheinert, K. Gontarska, L. Thamsen, 'Let's wait awhile: how temporal workload shifting "
    "can reduce carbon emissions in the cloud', Middleware 2021, section 5.3; its repository's jobs and intensities"
)
#: Countries and the savings that are printed [%], of jobs that run through and of jobs that may be interrupted.
PRINTED = {"ger": ("Germany", "5.91", "7.93"), "gb": ("Great Britain", "6.56", "9.03")}
_POINT = 1.0


def saving(path: Path, *, interruptible: bool) -> float:
    """Return what waiting saves of the grams that jobs emit which start at once [%].

    Parameters
    ----------
    path : Path
        Carbon intensity by time, of 2020; it is read from the first of January on.
    interruptible : bool
    """
    jobs = generate_deferrable_jobs(DeferrableJobs(interruptible=interruptible))
    carbon = Carbon(
        path, math.inf, columns="time=Time,value=Carbon Intensity,zone=UTC", fill="hold", start="2020-01-01"
    )
    grams = []
    for scheduler, parameters in (("wq", {}), ("wait_for_green", {"scheduler": "wq", "max_delay_s": 1e7})):
        scenario = Scenario(jobs.platform, jobs.tasks, scheduler, parameters, carbon=carbon, driver="reference")
        grams.append(float(run(scenario).metrics()["carbon_busy_g"]))  # type: ignore[arg-type]
    return 100 * (1 - grams[1] / grams[0])


def _case(country: str) -> Case:
    name, whole, pieces = PRINTED[country]
    keys = {"whole": ("jobs that run through", whole, False), "pieces": ("jobs that may be interrupted", pieces, True)}

    def measure(paths: tuple[Path, ...]) -> Values:
        return {key: saving(paths[0], interruptible=interrupted) for key, (_, _, interrupted) in keys.items()}

    return Case(
        f"wait-awhile-{country}",
        SOURCE,
        f"gridsched reproduce known --inputs DIR --only wait-awhile-{country}",
        measure,
        tuple(
            Row(key, f"{name}: grams saved, {words}, results wanted on the next workday", printed, "%", "share",
                _POINT / float(printed))
            for key, (words, printed, _) in keys.items()
        ),
        (Input(f"{country}_ci.csv.gz", "dos-group/lets-wait-awhile (data), compressed by gzip"),),
    )  # fmt: skip


CASES = tuple(map(_case, PRINTED))
