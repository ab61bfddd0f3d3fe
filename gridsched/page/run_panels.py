"""A page to look at a run, or at several, by Bokeh: a Gantt chart for each, and curves over the same time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
from bokeh.embed import components
from bokeh.layouts import column, gridplot
from bokeh.models import (
    BasicTicker,
    ColumnDataSource,
    CustomJS,
    CustomJSHover,
    CustomJSTickFormatter,
    FixedTicker,
    HoverTool,
    LinearAxis,
    PlainText,
    Range1d,
    Select,
)
from bokeh.plotting import figure
from bokeh.resources import Resources
from bokeh.transform import linear_cmap
from markupsafe import Markup

from gridsched.analysis.texts import prefixed, time_unit
from gridsched.arrays import Integers
from gridsched.errors import InputError, counted
from gridsched.files.output_files import write_whole
from gridsched.model.trace import ExecutionEnd
from gridsched.page.printing import page_html
from gridsched.page.run_data import Columns, ShownRun

#: Of the first run and the second, of a third and so on.
COLORS = ("#1b5c9e", "#c4581c", "#2e7d4f", "#7a3e9d", "#8a6d1b", "#4a4a4a")
#: Neighboring jobs have different colors.
_PALETTE = ("#8fb8de", "#a9d3a5", "#f0c987", "#c9b3e0", "#9ad0cf", "#e3b1b1", "#cfc69b", "#b3bccb",
            "#b06a00", "#7a1010", "#d02020", "#5b3c88")  # fmt: skip
_OF_JOBS = 8
_ENDED = (ExecutionEnd.CANCELLED, ExecutionEnd.KILLED, ExecutionEnd.FAILED, ExecutionEnd.TIMEOUT)
#: So many bars are drawn at once, which takes some hundredths of a second.
MOST_PLOTTED = 6_000
_MOST_USERS, EVERY_USER = 500, "all users"
_IN_VIEW = "(the {:,} longest of {:,} bars in view; zoom in for more)"
_CHOOSE_RUN = """
for (let k = 0; k < parts.length; k++)
  for (const part of parts[k])
    part.visible = select.value == all || titles[k] == select.value
"""
_TOOLS = "xwheel_zoom,xzoom_in,xzoom_out,reset,save"
_DRAGS = {"width": ["xpan", "xbox_zoom"], "both": ["pan", "box_zoom", "ywheel_zoom"]}
#: Of data between hosts; of edges on the longest path, with data sent between hosts, and others.
_SENT, _EDGES = "#a5371b", (
    ("longest path", "#a5371b", 3.0), ("data sent between hosts", "#2f6396", 1.2),
    ("within a host, or no data", "#a8a8a8", 1.0),
)  # fmt: skip
_ROW_PX, _LEAST_PX, _MOST_PX, _CURVES_PX = 15, 150, 620, 165
_MOST_CHARACTERS, _MOST_ZONES, _MOST_NAMED = 13, 60, 80
_NAME_OF_TICK = """
const name = Number.isInteger(tick) ? names[tick] : undefined
return name === undefined ? "" : (name.length > most ? name.slice(0, most - 1) + "\\u2026" : name)
"""
_HOSTS_OF_BAR = """
const last = source.data.last[special_vars.index]
return last > value ? `${names[value]} to ${names[last]} (${last - value + 1})` : names[value]
"""


def text(name: str) -> str:
    """Return a name so that Bokeh takes it for no formula."""
    for begin in ("$$", "\\[", "\\("):
        name = name.replace(begin, f"{begin[0]}\u200b{begin[1]}")
    return name


class Panels:
    """Panels over one time axis.

    Parameters
    ----------
    runs : sequence of ShownRun

    Attributes
    ----------
    figures : list
        The Gantt charts, then power, energy, jobs, traffic and signals.
    graphs : list
        What waits for what, a figure for each run in which anything does; they share no time.
    of_run : list of list
        What is shown of each run alone: its chart and its curves.
    user : Select or None
        Chooses whose bars are drawn.
    choices : list of Select
        `user`, and the run that is shown, where there are several.
    """

    def __init__(self, runs: Sequence[ShownRun]) -> None:
        self.runs = runs
        end_s = max([run.trace.horizon_s for run in runs]) or 1.0
        self.seconds, self.unit = time_unit(end_s)
        self.x_range = Range1d(
            0.0, end_s / self.seconds, bounds=(-0.05 * end_s / self.seconds, 1.05 * end_s / self.seconds)
        )
        longest = max(len(name) for run in runs for name in run.host_names)
        self._left_px = 40 + 6 * max(min(longest, _MOST_CHARACTERS), 4)
        self.figures: list[Any] = []
        self.graphs: list[Any] = []
        self.of_run: list[list[Any]] = [[] for _ in runs]
        self.user = _user_choice(runs)
        for k in range(len(runs)):
            self._draw_gantt(k)
        self._draw_curves()
        self.figures[-1].xaxis.axis_label = f"Time [{self.unit}]"
        for k in range(len(runs)):
            self._draw_graph(k)
        self.choices = [each for each in (self.user, self._run_choice()) if each is not None]

    def _run_choice(self) -> Select | None:
        """Return what shows one run alone, where there are several."""
        if len(self.runs) == 1:
            return None
        titles, every = [text(run.title) for run in self.runs], "all runs"
        select = Select(title="Scheduler", value=every, options=[every, *titles], width=340)
        args = {"parts": self.of_run, "titles": titles, "all": every, "select": select}
        select.js_on_change("value", CustomJS(args=args, code=_CHOOSE_RUN))
        return select

    @property
    def height_px(self) -> int:
        """Height of all panels together."""
        return sum(each.height for each in (*self.figures, *self.graphs))

    def _figure(self, label: str, height: int, drags: str = "width", **more: Any) -> Any:
        each = figure(
            height=height,
            x_range=self.x_range,
            tools=",".join([*_DRAGS[drags], _TOOLS]),
            active_scroll="xwheel_zoom",
            sizing_mode="stretch_width",
            min_border_left=self._left_px,
            min_border_right=14,
            **more,
        )
        each.yaxis.axis_label = PlainText(text=label)
        each.yaxis.axis_label_text_font_size = "11px"
        each.grid.grid_line_color = "#e4e9ee"
        each.outline_line_color = "#c3ced8"
        self.figures.append(each)
        return each

    def _scaled(self, columns: Columns, *times: str) -> Columns:
        return {name: each / self.seconds if name in times else each for name, each in columns.items()}

    # ------------------------------------------------------------------ hosts

    def _draw_gantt(self, k: int) -> None:
        run = self.runs[k]
        names = [text(name) for name in run.host_names]
        height = int(np.clip(_ROW_PX * len(names) + 30, _LEAST_PX, _MOST_PX))
        last = len(names) - 0.5
        gantt = self._figure("", height, "both", y_range=Range1d(last, -0.5, bounds=(-0.5, last)))
        gantt.quad(
            source=ColumnDataSource(self._scaled(run.switched(), "left", "right")),
            left="left", right="right", top="top", bottom="bottom", fill_color="#dadfe4", line_color=None,
        )  # fmt: skip
        columns = self._scaled(run.bars(), "left", "right")
        columns["color"] = _color_numbers(columns)
        source = ColumnDataSource({name: column[:MOST_PLOTTED] for name, column in columns.items()})
        bars = gantt.quad(
            source=source, left="left", right="right", top="top", bottom="bottom",
            fill_color=linear_cmap("color", list(_PALETTE), -0.5, len(_PALETTE) - 0.5),
            line_color="#ffffff" if len(names) <= 100 else None, line_width=0.4, hover_line_color="#000000",
        )  # fmt: skip
        gantt.add_tools(self._hover(run, bars, names))
        formatter = CustomJSTickFormatter(code=_NAME_OF_TICK, args={"names": names, "most": _MOST_CHARACTERS})
        gantt.yaxis.ticker = BasicTicker(min_interval=1, desired_num_ticks=max(height // 22, 4))
        gantt.yaxis.formatter = formatter
        gantt.yaxis.minor_tick_line_color = None
        gantt.ygrid.grid_line_color = None
        title = text(run.title) if len(self.runs) > 1 else ""
        gantt.title.update(text=title, text_color=COLORS[k % len(COLORS)], text_font_size="12px")
        self._draw_sent(gantt, run)
        self._mark_zones(gantt, run)
        self._follow(gantt, source, columns, run.users)
        self.of_run[k].append(gantt)

    def _draw_sent(self, gantt: Any, run: ShownRun) -> None:
        """Draw data on their way, from the begin on one host to the end on the other."""
        columns = self._scaled(run.sent(), "begin", "end")
        if not len(columns["begin"]):
            return
        columns |= {name: np.array([text(each) for each in columns[name].tolist()]) for name in ("maker", "taker")}
        source = ColumnDataSource(columns)
        ends = {"x0": "begin", "y0": "source", "x1": "end", "y1": "target"}
        lines = gantt.segment(
            source=source, **ends, line_color=_SENT, line_width=1.3, line_alpha=0.8, hover_line_color="#000000"
        )
        gantt.scatter("end", "target", source=source, size=5, color=_SENT)
        facts = [("data", "@bytes{0,0.[00]} bytes"), ("from task", "@maker"), ("for task", "@taker")]
        facts += [("sent", f"@begin{{0,0.[000]}} to @end{{0,0.[000]}} {self.unit}")]
        gantt.add_tools(HoverTool(renderers=[lines], tooltips=facts, line_policy="interp"))

    # ------------------------------------------------------------------ graphs

    def _draw_graph(self, k: int) -> None:
        """Draw the tasks that wait for each other in layers, with the longest path; nothing where none waits."""
        run = self.runs[k]
        graph = run.graph
        if graph is None:
            return
        layout, (top, bottom) = graph.layout, graph.layout.range_y
        height = int(np.clip(30 * (bottom - top + 2) + 60, 200, _MOST_PX))
        last = int(layout.x.max())
        panel = figure(
            height=height,
            x_range=Range1d(-0.5, last + 0.5),
            y_range=Range1d(bottom + 1, top - 1),
            tools="pan,box_zoom,wheel_zoom,reset,save",
            toolbar_location="above",
            sizing_mode="stretch_width",
            min_border_left=self._left_px,
            min_border_right=14,
        )
        panel.toolbar.logo = None
        panel.axis.visible = panel.grid.visible = False
        panel.outline_line_color = "#c3ced8"
        whose = f"{run.title}: " if len(self.runs) > 1 else ""
        panel.title.update(text=text(f"{whose}what waits for what"), text_font_size="12px")
        is_sent = graph.is_sent & ~graph.on_path
        for (label, color, width), rows in zip(
            _EDGES, (graph.on_path, is_sent, ~graph.on_path & ~is_sent), strict=True
        ):
            places = np.flatnonzero(rows).tolist()
            if places:
                curves = [layout.curves[each] for each in places]
                panel.multi_line(
                    [curve[:, 0].tolist() for curve in curves], [curve[:, 1].tolist() for curve in curves],
                    line_color=color, line_width=width, legend_label=label,
                )  # fmt: skip
        names = [text(name) for name in run.host_names]
        rows_of = run.row_of[graph.host]
        columns: Columns = {
            "x": layout.x,
            "y": layout.y,
            "task": np.array([text(str(label)) for label in run.trace.tasks.labels.tolist()]),
            "host": np.array([names[row] if of >= 0 else "none" for of, row in zip(graph.host, rows_of, strict=True)]),
            "start": graph.start_s / self.seconds,
            "end": graph.end_s / self.seconds,
            "color": np.array(_PALETTE)[np.where(graph.host >= 0, rows_of, 0) % _OF_JOBS],
            "line": np.where(graph.is_critical, _SENT, "#303030"),
            "width": np.where(graph.is_critical, 2.5, 0.6),
        }
        size = float(np.clip(0.4 * (height - 60) / (bottom - top + 2), 4, 12))
        tasks = panel.scatter(
            "x", "y", source=ColumnDataSource(columns), marker="square", size=size,
            fill_color="color", line_color="line", line_width="width", hover_line_color="#000000",
        )  # fmt: skip
        facts = [("task", "@task"), ("host", "@host"), ("start", f"@start{{0,0.[000]}} {self.unit}")]
        facts.append(("end", f"@end{{0,0.[000]}} {self.unit}"))
        panel.add_tools(HoverTool(renderers=[tasks], tooltips=facts))
        if len(columns["task"]) <= _MOST_NAMED and max(map(len, columns["task"].tolist())) <= _MOST_CHARACTERS:
            panel.text(
                "x", "y", text="task", source=ColumnDataSource(columns), y_offset=int(-0.6 * size) - 1,
                text_align="center", text_baseline="bottom", text_font_size="10px", text_color="#303030",
            )  # fmt: skip
        panel.add_layout(panel.legend[0], "below")
        panel.legend.orientation = "horizontal"
        panel.legend.label_text_font_size = "11px"
        panel.legend.border_line_color = None
        self.graphs.append(panel)
        self.of_run[k].append(panel)

    def _follow(self, gantt: Any, source: ColumnDataSource, columns: Columns, users: Sequence[str]) -> None:
        """Let the bars be those in view, the longest where they are too many, and of the user that is chosen."""
        is_whole = len(columns["left"]) <= MOST_PLOTTED
        if is_whole and self.user is None:
            return
        args = {"every": ColumnDataSource(columns), "shown": source, "gantt": gantt, "title": gantt.title.text}
        args |= {"most": MOST_PLOTTED, "user": self.user, "users": list(users), "all": EVERY_USER}
        choose = CustomJS(args=args, code=page_html("choose_bars.js"))
        if not is_whole:
            for each in (gantt.x_range, gantt.y_range):
                for edge in ("start", "end"):
                    each.js_on_change(edge, choose)
            gantt.title.text = f"{gantt.title.text} {_IN_VIEW.format(MOST_PLOTTED, len(columns['left']))}".strip()
        if self.user is not None:
            self.user.js_on_change("value", choose)

    def _hover(self, run: ShownRun, bars: Any, names: list[str]) -> HoverTool:
        def named(texts: Sequence[str]) -> CustomJSHover:
            return CustomJSHover(code="return texts[value] ?? ''", args={"texts": list(texts)})

        facts = [("job", "@job{0}"), ("hosts", "@row{custom}")]
        formatters = {"@row": CustomJSHover(code=_HOSTS_OF_BAR, args={"names": names, "source": bars.data_source})}
        if run.job_names:
            facts[0] = ("job", "@job{custom}")
            formatters["@job"] = named([text(name) for name in run.job_names])
        if run.users:
            facts.append(("user", "@user{custom}"))
            formatters["@user"] = named([text(name) for name in run.users])
        facts += [("start", f"@left{{0,0.[000]}} {self.unit}"), ("end", f"@right{{0,0.[000]}} {self.unit}")]
        facts += [("wait", "@wait{0,0.[000]} s"), ("P-state", "@pstate{0}")]
        if run.trace.platform.has_energy:
            facts.append(("energy", "@joules{0,0.[00]} J"))
        formatters["@outcome"] = named([end.name.lower() for end in sorted(ExecutionEnd)])
        return HoverTool(renderers=[bars], tooltips=[*facts, ("", "@outcome{custom}")], formatters=formatters)

    def _mark_zones(self, gantt: Any, run: ShownRun) -> None:
        """Draw a line between zones, and their names on the right."""
        sizes = [len(cluster.hosts) for cluster in run.trace.platform.clusters]
        if not 1 < len(sizes) <= _MOST_ZONES:
            return
        edges = np.cumsum([0, *sizes]) - 0.5
        gantt.hspan(y=edges[1:-1].tolist(), line_color="#51606e", line_width=1)
        middles = ((edges[1:] + edges[:-1]) / 2).tolist()
        labels = {
            middle: PlainText(text=text(cluster.name[:18]))
            for middle, cluster in zip(middles, run.trace.platform.clusters, strict=True)
        }
        axis = LinearAxis(ticker=FixedTicker(ticks=middles), major_label_overrides=labels, axis_line_color=None)
        axis.major_label_orientation = "vertical" if min(sizes) * _ROW_PX > 60 else "horizontal"
        axis.major_tick_line_color = None
        gantt.add_layout(axis, "right")

    # ------------------------------------------------------------------ curves

    def _draw_curves(self) -> None:
        curves = [self._scaled(run.curves(), "time") for run in self.runs]
        for name, unit, label in (("power", "W", "Power"), ("energy", "J", "Energy")):
            of_name = [each for each in curves if name in each]
            if of_name:
                factor, prefix = prefixed(unit, max(float(np.nanmax(each[name])) for each in of_name))
                for each in of_name:
                    each[name] = each[name] / factor
                self._draw_panel(f"{label} [{prefix}]", curves, {name: "solid"}, "" if name == "energy" else "after")
        self._draw_panel("Jobs", curves, {"waiting": "solid", "running": "dotted"}, "after")
        self._draw_traffic()
        signals = [run.signals() for run in self.runs]
        for unit in dict.fromkeys(unit for of_run in signals for unit in of_run):
            panel = self._figure(unit, _CURVES_PX)
            for k, of_run in enumerate(signals):
                for place, columns in enumerate(of_run.get(unit, [])):
                    self._draw_curve(panel, k, self._scaled(columns, "time"), "value", "after", k + place, "solid")

    def _draw_traffic(self) -> None:
        """Draw the rates over all links together and over the busiest one, where any run has a record of them."""
        traffic = [self._scaled(run.traffic(), "time") for run in self.runs]
        if any(traffic):
            factor, unit = prefixed("byte", max(float(each["links"].max()) for each in traffic if each))
            for each in filter(None, traffic):
                each |= {name: each[name] / factor for name in ("links", "busiest")}
            self._draw_panel(f"Links [{unit}/s]", traffic, {"links": "solid", "busiest": "dotted"}, "after")

    def _draw_panel(self, label: str, curves: list[Columns], names: dict[str, str], mode: str) -> None:
        """Draw some columns of all runs into a panel from 0; `mode` is that of steps, empty for a line."""
        panel = self._figure(label, _CURVES_PX)
        panel.y_range.start = 0
        for k, columns in enumerate(curves):
            for name in filter(columns.__contains__, names):
                self._draw_curve(panel, k, columns, name, mode, k, names[name])

    def _draw_curve(self, panel: Any, k: int, columns: Columns, name: str, mode: str, color: int, dash: str) -> None:
        """Draw a column of the k-th run, and show its values under the pointer."""
        style = {"color": COLORS[color % len(COLORS)], "line_dash": dash, "line_width": 1.5}
        draw = partial(panel.step, mode=mode) if mode else panel.line
        source = ColumnDataSource({each: columns[each] for each in ("time", name)})
        line = draw("time", name, source=source, **style)
        self.of_run[k].append(line)
        whose = [("run", escape(text(self.runs[k].title)))] if len(self.runs) > 1 else []
        tips = [*whose, (name, f"@{name}{{0,0.[000]}}"), ("time", f"@time{{0,0.[000]}} {self.unit}")]
        panel.add_tools(HoverTool(renderers=[line], tooltips=tips, mode="vline", line_policy="prev"))


def _color_numbers(columns: Columns) -> Integers:
    """Return the place in `_PALETTE` of each bar's color: by its user or job, or by how it ended early."""
    colors: Integers = np.where(columns["user"] >= 0, columns["user"], columns["job"]) % _OF_JOBS
    for color, end in enumerate(_ENDED, start=_OF_JOBS):
        colors[columns["outcome"] == end] = color
    return colors


def _user_choice(runs: Sequence[ShownRun]) -> Select | None:
    """Return the list of users, those with the most jobs first, where logs name them."""
    jobs = Counter[str]()
    for run in runs:
        if run.users:
            jobs.update(run.trace.tasks.attributes["user"].texts)
    users = [name for name, _ in jobs.most_common(_MOST_USERS) if name]
    return Select(title="User", value=EVERY_USER, options=[EVERY_USER, *users], width=240) if users else None


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
    """
    for run in runs:
        if not len(run.trace.platform):
            raise InputError(f"{run.title}: there is no host to show.")
    panels = Panels(_named_apart(runs))
    grid = gridplot(
        [[each] for each in panels.figures],
        sizing_mode="stretch_width",
        toolbar_location="above",
        toolbar_options={"logo": None},
    )
    script, body = components(column(*panels.choices, grid, *panels.graphs, sizing_mode="stretch_width"))
    resources = Resources(mode="inline", components=["bokeh", "bokeh-widgets"])
    html = page_html(
        "run.html",
        title=" and ".join(run.title for run in runs),
        facts=[(color, _fact(run)) for color, run in zip(cycle(COLORS), panels.runs, strict=False)],
        has_graph=any(run.graph is not None for run in panels.runs),
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
    counts = (
        f"{counted(len(trace.tasks), 'task')}, {counted(len(trace.executions), 'execution')} on "
        f"{counted(len(trace.platform), 'host')}"
    )
    return f"{run.title}: {counts}, until {trace.horizon_s:,.6g} s"
