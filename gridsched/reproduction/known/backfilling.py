"""Two tables of backfilling on KTH-SP2, one to all digits and one whose rules are described in part."""

from __future__ import annotations

import numpy as np

from gridsched.reproduction.known.cases import Case, Input, LogRun, Row, Values
from gridsched.runs.run import RunResult

KTH = Input(
    "KTH-SP2.swf.gz",
    "KTH SP2 (KTH-SP2-1996-2, not cleaned) of the Parallel Workloads Archive, "
    "https://www.cs.huji.ac.il/labs/parallel/workload/l_kth_sp2/",
)
EASY = "easy_backfilling"
SHORTEST = (("backfill_order", "shortest"),)

SC_2015 = (
    "E. Gaussier, D. Glesser, V. Reis, D. Trystram, 'Improving backfilling by using machine learning to predict "
    "running times', SC 2015, doi:10.1145/2807591.2807646; the metrics that its repository stores"
)
TSAFRIR = (
    "D. Tsafrir, Y. Etsion, D. G. Feitelson, 'Backfilling using system-generated predictions rather than user runtime "
    "estimates', technical report 2005 (tables 2 and 3; IEEE TPDS 18(6), 2007, doi:10.1109/TPDS.2007.70606)"
)
#: Requested processors, kills at the request, a look at the queue after every event.
_RULES_OF_SC_2015 = (("walltime", "kill"), ("mapping_events", "event"))
_SLOWDOWN = "mean_bounded_slowdown"


def _sc_2015(
    id: str, what: str, printed: dict[str, str], parameters: tuple[tuple[str, str], ...] = (), *, exact: bool = False,
    share: float = 0.0, why: str = "",
) -> Case:  # fmt: skip
    words = {
        _SLOWDOWN: ("mean bounded slowdown", ""),
        "mean_flow_time_s": ("mean flow time", "s"),
        "max_flow_time_s": ("longest flow time", "s"),
    }
    trace = (("nodes_from", "8"), *((("requests", "exact"),) if exact else ()))
    rows = tuple(
        Row(key, f"{what}: {words[key][0]}", text, words[key][1], "share" if share else "digits", share, why)
        for key, text in printed.items()
    )
    return LogRun(KTH, EASY, parameters, trace, _RULES_OF_SC_2015).case(f"sc2015-{id}", SC_2015, rows)


#: What is left open of the predictions, each beside what came before.
_ENDED = "last_two_of_user"
_LOOKS = "last_two_of_user(looks=True)"
_SUBMITTED = "last_two_of_user(last='submitted', looks=True)"
_TO_REQUEST = "last_two_of_user(last='submitted', correction='request', looks=True)"
DETAILS = {
    "ended": ("the last two that ended; corrected by steps at the next event", _ENDED),
    "looks": ("the same, and the queue is looked at when a prediction has passed", _LOOKS),
    "submitted": ("the same, of the last two submitted of those that have ended", _SUBMITTED),
    "to-request": ("the same, corrected to the request at once", _TO_REQUEST),
}


def without_first(result: RunResult) -> Values:
    """Return mean wait [min] and bounded slowdown without the first hundredth of the jobs."""
    facts = result.facts
    first = len(facts.waiting_s) // 100
    return {
        "wait_min": float(np.nanmean(facts.waiting_s[first:])) / 60.0,
        "slowdown": float(np.nanmean(facts.bounded_slowdown[first:])),
    }


def _tsafrir(
    id: str, what: str, wait_min: str, slowdown: str, parameters: tuple[tuple[str, str], ...] = (), *,
    exact: bool = False, why: str = "",
) -> Case:  # fmt: skip
    rows = (
        Row("wait_min", f"{what}: mean wait", wait_min, "min", "share", 0.05, why),
        Row("slowdown", f"{what}: mean bounded slowdown", slowdown, "", "share", 0.05, why),
    )
    trace = (("nodes_from", "8"), *((("requests", "exact"),) if exact else ()))
    run = LogRun(KTH, EASY, parameters, trace, (("walltime", "kill"),))
    return run.case(f"tsafrir-{id}", f"{TSAFRIR}; without the first 1 % of the jobs", rows, without_first)


_OPEN = (
    "the report leaves open which jobs are a user's last two, when a passed prediction is corrected, and by how much: "
    "the rows beside it try one detail after the other"
)
CASES = (
    _sc_2015(
        "easy",
        "EASY",
        {_SLOWDOWN: "92.5765397336295", "mean_flow_time_s": "15696.7981812436", "max_flow_time_s": "309231"},
    ),
    _sc_2015("sjbf", "EASY-SJBF", {_SLOWDOWN: "69.4054005803035", "mean_flow_time_s": "14764.0026684456"}, SHORTEST),
    _sc_2015("easy-known", "EASY with known run times", {_SLOWDOWN: "71.722"}, exact=True),
    _sc_2015("sjbf-known", "EASY++ with known run times", {_SLOWDOWN: "49.8477"}, SHORTEST, exact=True),
    _sc_2015(
        "easy-plus",
        "EASY with Tsafrir's prediction and correction",
        {_SLOWDOWN: "85.4429"},
        (("estimate", _LOOKS),),
        share=0.05,
        why=_OPEN,
    ),
    _sc_2015(
        "easy-plus-plus",
        "EASY++",
        {_SLOWDOWN: "63.5007"},
        (*SHORTEST, ("estimate", _LOOKS)),
        share=0.05,
        why=_OPEN,
    ),
    _tsafrir("easy", "EASY", "114.2", "89.9"),
    _tsafrir("sjbf", "EASY-SJBF", "102", "73", SHORTEST),
    _tsafrir("perfect", "PERFECT++", "91", "50", SHORTEST, exact=True),
    *(
        _tsafrir(f"easy-plus-{id}", f"EASY+, {words}", "108.3", "79.2", (("estimate", text),), why=_OPEN)
        for id, (words, text) in DETAILS.items()
    ),
    *(
        _tsafrir(f"easy-plus-plus-{id}", f"EASY++, {words}", "94", "57", (*SHORTEST, ("estimate", text)), why=_OPEN)
        for id, (words, text) in DETAILS.items()
    ),
)  # fmt: skip
