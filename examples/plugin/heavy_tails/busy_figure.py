"""How unequally hosts were busy, as a figure."""

from matplotlib.figure import Figure

from gridsched import PlottedFigure, register_figure
from heavy_tails.balance import busy_s


@register_figure("busy", "run", "Busy time of each host.")
def busy(trace):
    figure, names = Figure((6, 3)), [host.name for host in trace.platform.hosts]
    figure.subplots(subplot_kw={"ylabel": "busy time [s]"}).bar(names, busy_s(trace))
    return PlottedFigure(figure, {"host": names, "busy_s": busy_s(trace)})
