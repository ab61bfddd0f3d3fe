"""A page to look at a run, or at several on one time axis: one file that needs nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import cycle
from pathlib import Path

from markupsafe import Markup

from gridsched.errors import InputError, MissingDependency
from gridsched.files.output_files import write_whole
from gridsched.page.printing import page_html
from gridsched.page.run_data import ShownRun

HOW_TO_INSTALL = "Pages of runs need Bokeh; install it: pip install 'gridsched[view]'."
#: What the page adds to the panels' height in a notebook [px].
_HEADER_PX = 260


@dataclass(frozen=True)
class RunPage:
    """A page that shows one run or several; notebooks show it in a frame.

    Attributes
    ----------
    html : str
        The whole page.
    height_px : int
        About how high it is.
    """

    html: str
    height_px: int

    def save(self, path: str | Path, *, force: bool = False) -> Path:
        """Write the page to a file (.html) and return its path.

        Raises
        ------
        InputError
            If the file exists and `force` is not set, or cannot be written.
        """
        write_whole(path, self.html, force=force)
        return Path(path)

    def _repr_html_(self) -> str:
        style = f"width: 100%; height: {self.height_px}px; border: 0"
        return f'<iframe srcdoc="{escape(self.html)}" style="{style}"></iframe>'


def run_page(runs: Sequence[ShownRun]) -> RunPage:
    """Return a page of one run, or of several one below the other on one time axis.

    Parameters
    ----------
    runs : sequence of ShownRun

    Raises
    ------
    InputError
        If a run has no host.
    MissingDependency
        If Bokeh is not installed.
    """
    for run in runs:
        if not len(run.trace.platform):
            raise InputError(f"{run.title}: there is no host to show.")
    try:
        from bokeh.embed import components
        from bokeh.layouts import column, gridplot
        from bokeh.resources import Resources

        from gridsched.page.run_panels import COLORS, Panels
    except ImportError:
        raise MissingDependency(HOW_TO_INSTALL) from None
    panels = Panels(_named_apart(runs))
    grid = gridplot(
        [[each] for each in panels.figures],
        sizing_mode="stretch_width",
        toolbar_location="above",
        toolbar_options={"logo": None},
    )
    script, body = components(column(*panels.choices, grid, sizing_mode="stretch_width"))
    resources = Resources(mode="inline", components=["bokeh", "bokeh-widgets"])
    html = page_html(
        "run.html",
        title=" and ".join(run.title for run in runs),
        facts=[(color, _fact(run)) for color, run in zip(cycle(COLORS), panels.runs, strict=False)],
        notes=list(dict.fromkeys(note for run in panels.runs for note in run.notes)),
        library=Markup("\n".join(f"<script>{each}</script>" for each in resources.js_raw)),
        script=Markup(script),
        body=Markup(body),
    )
    return RunPage(html, panels.height_px + _HEADER_PX)


def _named_apart(runs: Sequence[ShownRun]) -> list[ShownRun]:
    """Return the runs with numbers behind titles that are the same."""
    times = Counter(run.title for run in runs)
    return [
        ShownRun(f"{run.title} ({k})", run.trace, run.notes) if times[run.title] > 1 else run
        for k, run in enumerate(runs, start=1)
    ]


def _fact(run: ShownRun) -> str:
    trace = run.trace
    counts = f"{len(trace.tasks):,} tasks, {len(trace.executions):,} executions on {len(trace.platform):,} hosts"
    return f"{run.title}: {counts}, until {trace.horizon_s:,.6g} s"
