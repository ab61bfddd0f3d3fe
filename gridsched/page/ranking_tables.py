"""Who has the best mean of a metric in a study, by how much, and the others in order: words and tables."""

from __future__ import annotations

import math

import pandas as pd

from gridsched.analysis.rankings import RankedScheduler, Ranking
from gridsched.analysis.statistics import Interval
from gridsched.analysis.study_results import StudyResults
from gridsched.analysis.texts import TextTable, number_text
from gridsched.errors import counted
from gridsched.figures.axes import scale_of
from gridsched.metrics import METRICS

#: A table shows no more schedulers than this; the CSV beside it holds all.
MOST_SHOWN = 12


def ranking_words(ranking: Ranking) -> tuple[str, str, str]:
    """Return the metric, who is the best in it, and how far the next one is behind."""
    entry, winner, second = METRICS[ranking.metric], ranking.winner, ranking.schedulers[1]
    most = "most" if entry.better == "more" else "least"
    if winner.best_in == winner.settings:
        where = f" in all {winner.settings} settings" if winner.settings > 1 else ""
        who = f"{winner.label} has the {most}{where}{_shared(ranking)}."
    else:
        who = (
            f"{winner.label} has the best mean rank ({winner.mean_rank:.3g}), and the {most} in "
            f"{winner.best_in} of {winner.settings} settings."
        )
    return entry.name, who, _of_second(ranking, second)


def _shared(ranking: Ranking) -> str:
    """Say in how many settings another scheduler is as good as the one that is the best in all."""
    equal = [each for each in ranking.schedulers[1:] if each.best_in]
    if not equal:
        return ""
    settings = ranking.winner.settings
    share = [f"{each.label}{f' in {each.best_in} of them' * (settings > 1)}" for each in equal]
    return f", shared with {', '.join(share)}"


def _of_second(ranking: Ranking, second: RankedScheduler) -> str:
    above, winner = second.above, ranking.winner
    if not above.count:
        return f"Next is {second.label}; no replicate has all runs of both."
    if above.mean == 0 and second.mean_rank == winner.mean_rank:
        return f"{second.label} is its equal."
    nearest = _nearest(ranking)
    next_is = "Next is" if nearest is second else "Next by mean rank is"
    of = "on average over the settings" if winner.settings > 1 else "on average"
    text = f"{next_is} {second.label}: {_how_far(ranking, above)} {of}"
    if above.low <= 0 <= above.high:
        text = f"{text}; the interval holds 0, so the replicates do not separate the two."
    elif above.count < 2:
        text = f"{text}, in one replicate."
    else:
        text = f"{text}, paired over {counted(above.count, 'replicate')}."
    if nearest is second:
        return text
    relation = "better than the first" if _worse(ranking, nearest) < 0 else "nearer"
    return f"{text} On average {nearest.label} is {relation}: {_how_far(ranking, nearest.above)}."


def _worse(ranking: Ranking, each: RankedScheduler) -> float:
    """Return by how much a scheduler's mean is worse than the winner's; infinite where nothing pairs them."""
    if not each.above.count:
        return math.inf
    return -each.above.mean if METRICS[ranking.metric].better == "more" else each.above.mean


def _nearest(ranking: Ranking) -> RankedScheduler:
    """Return the scheduler with the best mean beside the winner: it need not be the second by rank."""
    return min(ranking.schedulers[1:], key=lambda each: _worse(ranking, each))


def _how_far(ranking: Ranking, above: Interval) -> str:
    """Return a paired difference from the winner, in words."""
    factor, unit = _difference_unit(ranking)
    amount = f"{number_text(abs(above.mean) / factor, above.half_width / factor)} {unit}".rstrip()
    return f"{amount} {'more' if above.mean >= 0 else 'less'}"


def _difference_unit(ranking: Ranking) -> tuple[float, str]:
    """Return the divisor and the unit of the differences."""
    if ranking.is_relative:
        return 1.0, "%"
    entry = METRICS[ranking.metric]
    if entry.is_share:
        return 0.01, "points of %"
    return _scale(ranking)[0], _scale(ranking)[1].removeprefix(entry.name).strip(" []")


def _scale(ranking: Ranking) -> tuple[float, str]:
    return scale_of(ranking.metric, max(abs(each.mean.mean) for each in ranking.schedulers))


def ranking_table(ranking: Ranking) -> TextTable:
    """Return the schedulers by their rank over all settings, with means and differences."""
    factor, title = _scale(ranking)
    entry, (step, unit) = METRICS[ranking.metric], _difference_unit(ranking)
    step, side = (-step, "below") if entry.better == "more" else (step, "above")
    best = min(each.mean_rank for each in ranking.schedulers)
    rows, notes, marked = [], [], set()
    for k, each in enumerate(ranking.schedulers[:MOST_SHOWN]):
        mean = number_text(each.mean.mean / factor, each.mean.half_width / factor)
        worse = number_text(each.above.mean / step, each.above.half_width / abs(step)) if each.above.count else "-"
        rows.append([each.label, f"{each.mean_rank:.3g}", f"{each.best_in} of {each.settings}", mean, worse])
        if each.mean_rank == best:
            marked.add((k, 0))
    difference = f"{side} best" + (f" [{unit}]" if unit else "")
    header = ["scheduler", "mean rank", "best in", f"mean {title.removeprefix(entry.name).strip()}".strip(), difference]
    if len(ranking.schedulers) > MOST_SHOWN:
        notes.append(f"The best {MOST_SHOWN} of {len(ranking.schedulers)} schedulers.")
    if any(row[-1].startswith("-") and row[-1] != "-" for row in rows):
        notes.append("Negative: better on average than the first, which has the best mean rank.")
    return TextTable(entry.name, header, rows, 1, " ".join(notes), frozenset(marked))


def rankings_note(results: StudyResults) -> str:
    """Return what the numbers of the answers are."""
    n = results.study.replicates
    if not results.varying_axes:
        text = f"Ranks by the means of {counted(n, 'replicate')}."
    else:
        axes = "the combinations of the axes below, replicates and schedulers apart"
        text = (
            f"Settings are {axes}. Ranks are by the means of {counted(n, 'replicate')} in each setting, "
            "1 being the best."
        )
    return (
        f"{text} Means and paired differences are taken over settings within each replicate, then "
        "over replicates, with 95 % intervals; these hold for one comparison each, and the winner "
        "was chosen by the same runs."
    )


def ranking_frame(ranking: Ranking) -> pd.DataFrame:
    """Return all numbers of a ranking; differences are in [%] if ``unit`` is that."""
    entry = METRICS[ranking.metric]
    return pd.DataFrame(
        [
            {
                "metric": ranking.metric,
                "scheduler": each.label,
                "mean_rank": each.mean_rank,
                "best_in": each.best_in,
                "settings": each.settings,
                "mean": each.mean.mean,
                "mean_low": each.mean.low,
                "mean_high": each.mean.high,
                "above_winner": each.above.mean,
                "above_low": each.above.low,
                "above_high": each.above.high,
                "replicates": each.above.count,
                "unit_of_difference": "%" if ranking.is_relative else entry.unit,
            }
            for each in ranking.schedulers
        ]
    )
