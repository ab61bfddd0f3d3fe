"""What is possible and what it earns, a panel for each level: figure 5 of paper 003."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from gridsched.analysis.claim_values import Level
from gridsched.analysis.study_results import StudyResults, restricted
from gridsched.analysis.texts import axis_name
from gridsched.campaign.segments import with_infinities
from gridsched.errors import InputError
from gridsched.figures.declared_panels import (
    declared_drawn,
    drawn_levels,
    drawn_where,
    families_of,
    level_text,
)
from gridsched.figures.figure_file import new_figure
from gridsched.figures.front_figure import draw_landscape, points_table
from gridsched.figures.table import Drawn, register_figure
from gridsched.optimize.answers import Landscape, front_answer, landscape, profit_answer
from gridsched.spec.claims_schema import DeclaredFigure
from gridsched.spec.optimization import optimize
from gridsched.spec.run_spec import OPTIMIZE, RunSpec
from gridsched.spec.scenario_maker import ScenarioMaker


@register_figure("landscapes", "declared", "The feasible region with profit contours, by level.")
def landscapes(results: StudyResults, declared: DeclaredFigure) -> Drawn:
    """Draw a panel for each level, of its first stored optimisation.

    What is possible follows from the run's description, as bounds do: it is computed here.

    Raises
    ------
    InputError
        If a level has no stored run with the driver ``optimize``, or a file of it is damaged.
    """
    (family, *_) = families_of(results, declared, single=False)
    levels = drawn_levels(results, declared, family)
    figure = new_figure(3.6 * len(levels) + 0.6, 4.2)
    panels = figure.subplots(1, len(levels), squeeze=False)[0]
    tables = []
    for axes, level in zip(panels, levels, strict=True):
        points = draw_landscape(axes, _landscape(results, declared, level))
        axes.set_title(f"{axis_name(declared.along)} {level_text(declared, level.value)}")
        tables.append(pd.DataFrame(points_table(points)).assign(**{declared.along: level.value}))
    for axes in panels[1:]:
        axes.set_ylabel("")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return declared_drawn(declared, figure, pd.concat(tables, ignore_index=True))


def _landscape(results: StudyResults, declared: DeclaredFigure, level: Level) -> Landscape:
    """Return what is possible for the bag of a level's first run, and its most profitable plan."""
    where = {**drawn_where(results, declared), **level.where, "scheduler": (level.label,)}
    runs = restricted(results.shown, where).sort_values("replicate")
    for text in runs["scenario"].head(1):
        described = with_infinities(json.loads(text))
        if RunSpec.read(described).settings.driver == OPTIMIZE:
            study = results.study
            maker = ScenarioMaker({f.sha256: f.checked() for f in study.inputs.values()}, Path())
            if study.is_imported:
                maker.load_policies(study.policies)
            wanted = maker.optimization(described)
            plan = optimize(wanted).plan
            if plan.tariff is None:
                break
            limits = {"power_cap_w": plan.power_cap_w, "least_rate_per_s": plan.least_rate_per_s}
            answer = profit_answer(wanted.named, plan.tariff, **limits)
            return landscape(front_answer(wanted.named, plan.tariff), answer)
    raise InputError(
        f"Figure {declared.name!r}: {level.label} has no finished run with the driver "
        f"{OPTIMIZE!r} and a price; kind 'landscapes' draws such runs."
    )
