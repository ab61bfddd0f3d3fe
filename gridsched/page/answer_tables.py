"""The answers of a study in words and as tables."""

from __future__ import annotations

import pandas as pd

from gridsched.analysis.answers import Answer, Rival
from gridsched.analysis.statistics import Interval
from gridsched.analysis.study_results import StudyResults
from gridsched.analysis.texts import TextTable, number_text
from gridsched.figures.study_panels import scale_of
from gridsched.metrics import METRICS

#: A table shows no more schedulers than this; the CSV beside it holds all.
MOST_RIVALS = 12


def answer_words(answer: Answer) -> tuple[str, str, str]:
    """Return the metric, who is the best in it, and how far the next one is behind."""
    entry, winner, second = METRICS[answer.metric], answer.winner, answer.rivals[1]
    most = "most" if entry.better == "more" else "least"
    if winner.best_in == winner.settings:
        where = f" in all {winner.settings} settings" if winner.settings > 1 else ""
        who = f"{winner.label} has the {most}{where}."
    else:
        who = (
            f"{winner.label} has the best mean rank ({winner.mean_rank:.3g}), and the {most} in "
            f"{winner.best_in} of {winner.settings} settings."
        )
    return entry.name, who, _of_second(answer, second)


def _of_second(answer: Answer, second: Rival) -> str:
    above, winner = second.above, answer.winner
    if not above.count:
        return f"Next is {second.label}; no replicate has all runs of both."
    if above.mean == 0 and second.mean_rank == winner.mean_rank:
        return f"{second.label} is its equal."
    amount = _difference_text(answer, above, signed=False)
    side = "more" if above.mean >= 0 else "less"
    of = "on average over the settings" if winner.settings > 1 else "on average"
    text = f"Next is {second.label}: {amount} {side} {of}"
    if above.low <= 0 <= above.high:
        return f"{text}; the interval holds 0, so the replicates do not tell the two apart."
    if above.count < 2:
        return f"{text}, in one replicate."
    return f"{text}, paired over {above.count} replicates."


def _difference_text(answer: Answer, above: Interval, *, signed: bool) -> str:
    """Return a difference with its unit (as text), or with its sign and without (in a table)."""
    factor, unit = _difference_unit(answer)
    mean = above.mean if signed else abs(above.mean)
    text = number_text(mean / factor, above.half_width / factor, signed=signed)
    return text if signed or not unit else f"{text} {unit}"


def _difference_unit(answer: Answer) -> tuple[float, str]:
    """Return the divisor and the unit of the differences."""
    if answer.is_relative:
        return 1.0, "%"
    entry = METRICS[answer.metric]
    if entry.is_share:
        return 0.01, "points of %"
    return _scale(answer)[0], _scale(answer)[1].removeprefix(entry.name).strip(" []")


def _scale(answer: Answer) -> tuple[float, str]:
    return scale_of(answer.metric, max(abs(rival.mean.mean) for rival in answer.rivals))


def answer_table(answer: Answer) -> TextTable:
    """Return the schedulers by their rank over all settings, with means and differences."""
    factor, title = _scale(answer)
    entry, unit = METRICS[answer.metric], _difference_unit(answer)[1]
    rows = []
    for rival in answer.rivals[:MOST_RIVALS]:
        mean = number_text(rival.mean.mean / factor, rival.mean.half_width / factor)
        above = _difference_text(answer, rival.above, signed=True) if rival.above.count else "-"
        best_in = f"{rival.best_in} of {rival.settings}"
        rows.append([rival.label, f"{rival.mean_rank:.3g}", best_in, mean, above])
    unit_of_mean = title.removeprefix(entry.name).strip()
    header = [
        "scheduler", "mean rank", "best in", f"mean {unit_of_mean}".strip(),
        "above best" + (f" [{unit}]" if unit else ""),
    ]  # fmt: skip
    note = ""
    if len(answer.rivals) > MOST_RIVALS:
        note = f"The best {MOST_RIVALS} of {len(answer.rivals)} schedulers."
    best = min(rival.mean_rank for rival in answer.rivals)
    marked = {
        (k, 0) for k, rival in enumerate(answer.rivals[:MOST_RIVALS]) if rival.mean_rank == best
    }
    return TextTable(entry.name, header, rows, 1, note, frozenset(marked))


def answers_note(results: StudyResults) -> str:
    """Return what the numbers of the answers are."""
    n = results.study.replicates
    if not results.varying_axes:
        text = f"Ranks by the means of {n} replicates."
    else:
        axes = "the combinations of the axes below, replicates and schedulers apart"
        text = (
            f"Settings are {axes}. Ranks are by the means of {n} replicates in each setting, 1 "
            "being the best."
        )
    return (
        f"{text} Means and paired differences are taken over settings within each replicate, then "
        "over replicates, with 95 % intervals; these hold for one comparison each, and the winner "
        "was chosen by the same runs."
    )


def answer_frame(answer: Answer) -> pd.DataFrame:
    """Return all numbers of an answer; differences are in [%] where ``unit`` says so."""
    entry = METRICS[answer.metric]
    return pd.DataFrame([
        {
            "metric": answer.metric, "scheduler": rival.label, "mean_rank": rival.mean_rank,
            "best_in": rival.best_in, "settings": rival.settings, "mean": rival.mean.mean,
            "mean_low": rival.mean.low, "mean_high": rival.mean.high,
            "above_winner": rival.above.mean, "above_low": rival.above.low,
            "above_high": rival.above.high, "replicates": rival.above.count,
            "unit_of_difference": "%" if answer.is_relative else entry.unit,
        }
        for rival in answer.rivals
    ])  # fmt: skip
