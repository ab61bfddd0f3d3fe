"""The claims of the study `robust`."""

from __future__ import annotations

from gridsched.reproduction.claim_statistics import mean, median, median_difference
from gridsched.runs.claims_schema import Claim, Explanation, Ground, numbered

PROBE = Ground("after", "written after a probe of 30 trials on five other systems had been seen")
MISSED = Ground("after", "added when the runs had been seen, because it is missed")
READING = Ground("after", "added when runs of this reading had been seen")
WRITTEN = Ground("before", "written with the list of claims; no probe of this question had been run")
RANGE = Ground("before", "the range that the paper prints; before any run it was 1 to 7, which is wider")
SYSTEM = Ground("after", "the system was chosen so that it holds")
SQ = "SQ(energy_fair_share=False, robustness=0.0)"
MECT = "MECT(energy_fair_share=False, robustness=0.0)"
LL = "LL(energy_fair_share=False, robustness=0.0)"
RANDOM = "Random(energy_fair_share=False, robustness=0.0)"
LL_FIRST = "LL, first(energy_fair_share=False, robustness=0.0)"
SQ_EN_ROB = "SQ(energy_fair_share=True, robustness=0.5)"
MECT_EN_ROB = "MECT(energy_fair_share=True, robustness=0.5)"
LL_EN_ROB = "LL(energy_fair_share=True, robustness=0.5)"
RANDOM_EN_ROB = "Random(energy_fair_share=True, robustness=0.5)"
LL_FIRST_EN_ROB = "LL, first(energy_fair_share=True, robustness=0.5)"
RANDOM_ROB = "Random(energy_fair_share=False, robustness=0.5)"
RANDOM_EN = "Random(energy_fair_share=True, robustness=0.0)"
SQ_ROB = "SQ(energy_fair_share=False, robustness=0.5)"
MECT_ROB = "MECT(energy_fair_share=False, robustness=0.5)"
LL_ROB = "LL(energy_fair_share=False, robustness=0.5)"
SQ_EN = "SQ(energy_fair_share=True, robustness=0.0)"
MECT_EN = "MECT(energy_fair_share=True, robustness=0.0)"
LL_EN = "LL(energy_fair_share=True, robustness=0.0)"

CLAIMS = [
    # Claims F-002 of algorithms.md. Set "after": written after a probe had been seen.
    *(
        Claim(
            f"F1-{k}",
            "number",
            "Median of missed deadlines, no filter",
            "section VII, figures 2 to 5; tolerance: 10 %",
            median("tasks_missed", scheduler),
            tolerance,
            PROBE,
            paper=paper,
            unit="tasks",
        )
        for k, (scheduler, paper, tolerance) in numbered(
            (SQ, 375.5, 37.55), (MECT, 370.0, 37.0), (LL, 381.0, 38.1), (RANDOM, 561.5, 56.15)
        )
    ),
    # Not in F-002; added when the runs had been seen, because it is missed.
    *(
        Claim(
            f"F1-order-{k}",
            "order",
            "No filter: the median of LL is larger than that of another",
            "section VII: SQ and MECT are both slightly better than LL",
            median_difference("tasks_missed", scheduler, LL),
            "order_or_tie",
            MISSED,
            unit="tasks",
        )
        for k, scheduler in numbered(SQ, MECT)
    ),
    # With the other reading of ties.
    *(
        Claim(
            f"F1-order-first-{k}",
            "order",
            "No filter: the median of LL, first pair of a tie, is larger than that of another",
            "section VII: SQ and MECT are both slightly better than LL",
            median_difference("tasks_missed", scheduler, LL_FIRST),
            "order_or_tie",
            READING,
            unit="tasks",
        )
        for k, scheduler in numbered(SQ, MECT)
    ),
    *(
        Claim(
            f"F2-{k}",
            "number",
            "Median of missed deadlines, both filters",
            "section VII, figure 6; tolerance: 12 %",
            median("tasks_missed", scheduler),
            tolerance,
            PROBE,
            paper=paper,
            unit="tasks",
        )
        for k, (scheduler, paper, tolerance) in numbered(
            (SQ_EN_ROB, 234.5, 28.14),
            (MECT_EN_ROB, 239.5, 28.74),
            (LL_EN_ROB, 226.0, 27.12),
            (RANDOM_EN_ROB, 266.0, 31.92),
        )
    ),
    *(
        Claim(
            f"F2-best-{k}",
            "order",
            "Both filters: the median of LL is the least, that of another is larger",
            "section VII, figure 6",
            median_difference("tasks_missed", LL_EN_ROB, against),
            "order_or_tie",
            WRITTEN,
            unit="tasks",
        )
        for k, against in numbered(SQ_EN_ROB, MECT_EN_ROB, RANDOM_EN_ROB)
    ),
    *(
        Claim(
            f"F2-best-first-{k}",
            "order",
            "Both filters: the median of LL, first pair of a tie, is the least, that of another is larger",
            "section VII, figure 6",
            median_difference("tasks_missed", LL_FIRST_EN_ROB, against),
            "order_or_tie",
            READING,
            unit="tasks",
        )
        for k, against in numbered(SQ_EN_ROB, MECT_EN_ROB, RANDOM_EN_ROB)
    ),
    Claim(
        "F3",
        "number",
        "Median of missed deadlines, robustness filter alone",
        "section VII, figure 5; tolerance: 15 %",
        median("tasks_missed", RANDOM_ROB),
        50.3,
        PROBE,
        paper=335.5,
        unit="tasks",
    ),
    Claim(
        "F4",
        "number",
        "The energy filter alone worsens Random",
        "section VII: 3.45 %",
        median_difference("tasks_missed", RANDOM, RANDOM_EN),
        (0.0, 8.0),
        PROBE,
        paper=3.45,
        unit="points",
        scale=0.1,
    ),
    *(
        Claim(
            f"F5-{k}",
            "shape",
            "The robustness filter alone changes nothing",
            "section VII: no significant change",
            median_difference("tasks_missed", scheduler, against),
            (-20.0, 20.0),
            WRITTEN,
            unit="tasks",
        )
        for k, (scheduler, against) in numbered((SQ, SQ_ROB), (MECT, MECT_ROB), (LL, LL_ROB))
    ),
    *(
        Claim(
            f"F6-{k}",
            "number",
            "The robustness filter improves the energy filter",
            "section VII: two to three percent",
            median_difference("tasks_missed", scheduler, against),
            (2.0, 3.0),
            RANGE,
            paper=2.5,
            paper_range=(2.0, 3.0),
            unit="points",
            scale=0.1,
        )
        for k, (scheduler, against) in numbered((SQ_EN_ROB, SQ_EN), (MECT_EN_ROB, MECT_EN), (LL_EN_ROB, LL_EN))
    ),
    # Of SQ the paper's own medians give 14.1, of Random 29.55.
    *(
        Claim(
            f"F7-{k}",
            "number",
            "Both filters improve on none",
            "section VII, summary",
            median_difference("tasks_missed", scheduler, against),
            tolerance,
            WRITTEN,
            paper=paper,
            unit="points",
            scale=0.1,
        )
        for k, (scheduler, against, paper, tolerance) in numbered(
            (RANDOM_EN_ROB, RANDOM, 25.0, (20.0, 100.0)),
            (SQ_EN_ROB, SQ, 13.65, 3.0),
            (MECT_EN_ROB, MECT, 13.05, 3.0),
            (LL_EN_ROB, LL, 15.5, 3.0),
        )
    ),
    Claim(
        "F8",
        "number",
        "The best LL improves on MECT without filter",
        "section VII: 14 %",
        median_difference("tasks_missed", LL_EN_ROB, MECT),
        3.0,
        WRITTEN,
        paper=14.0,
        unit="points",
        scale=0.1,
    ),
    Claim(
        "F9",
        "number",
        "With both filters Random comes close to LL",
        "section VII: 4 %",
        median_difference("tasks_missed", LL_EN_ROB, RANDOM_EN_ROB),
        (-8.0, 8.0),
        WRITTEN,
        paper=4.0,
        unit="points",
        scale=0.1,
    ),
    Claim(
        "F10",
        "theorem",
        "Mean run time t_avg: half the mean time from arrival to deadline",
        "section VI; tolerance: 3 %; the system was chosen so that it holds",
        mean("mean_time_to_deadline_s", LL),
        40.6,
        SYSTEM,
        paper=1353.0,
        unit="s",
        scale=0.5,
    ),
]

EXPLANATIONS = [
    Explanation(
        ("F6-2", "F6-3"),
        (
            "The filter helps more here than in the paper: with the energy filter alone MECT misses 302.5 and LL "
            "296.5 tasks in the median, and with both 248 and 234. The paper's two to three percent and its "
            "medians with both (239.5 and 226) imply about 265 and 251 with the energy filter alone; it prints "
            "neither number. What makes the energy filter alone worse here is open."
        ),
        (
            (
                "driver == 'reference' and replicate == 0 and scheduler in ('MECT(energy_fair_share=True, "
                "robustness=0.0)', 'MECT(energy_fair_share=True, robustness=0.5)', 'LL(energy_fair_share=True, "
                "robustness=0.0)', 'LL(energy_fair_share=True, robustness=0.5)')"
            ),
        ),
    ),
    Explanation(
        ("F1-order-1", "F1-order-2"),
        (
            "Ties decide. In 430 of 664 mappings (mean of the first two trials) the least load is exactly 0: "
            "several pairs are certainly in time, and ours takes the one with the smaller energy. So the budget "
            "lasts until 24,812 s on average over 50 trials, with SQ and MECT until 23,650 s, and its end kills 340 "
            "tasks instead of 363. With the first of these pairs (LL, first) it lasts until 23,591 s and kills "
            "366, and LL misses 389 in the median: as many as SQ, and 3.2 [1.9, 4.6] more than MECT on average. "
            "The paper names no second criterion."
        ),
        (
            (
                "driver == 'reference' and replicate == 0 and scheduler in ('LL(energy_fair_share=False, "
                "robustness=0.0)', 'LL, first(energy_fair_share=False, robustness=0.0)', 'SQ(energy_fair_share=False, "
                "robustness=0.0)', 'MECT(energy_fair_share=False, robustness=0.0)')"
            ),
        ),
    ),
]
