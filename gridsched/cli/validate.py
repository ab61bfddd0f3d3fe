"""``gridsched validate``: the model beside SimGrid's plugin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from gridsched.cli.compare import SchedulersOption, report_failures, run_each, scenarios_of
from gridsched.cli.output import PRINTED, Outputs, say, warn
from gridsched.cli.scenario_options import SchedulerParameters, paths_read, refuse_without_effect, with_scenario_options
from gridsched.cli.tables import console, print_table
from gridsched.energy import ENERGY_TOLERANCE, HostEnergy, compare_energy, trace_energy
from gridsched.errors import InputError
from gridsched.metrics.columns import Column
from gridsched.metrics.identities import TOLERANCE, identities_of
from gridsched.model.trace import Trace
from gridsched.runs.plugin_agreement import carbon_check, energy_check
from gridsched.runs.run import RunResult
from gridsched.runs.run_spec import RunSpec
from gridsched.scenario import LoadedScenario

_HOST_COLUMNS = (
    Column("scheduler", "scheduler"),
    Column("host", "host"),
    Column("role", "role"),
    Column("plugin_j", "plugin\n[{unit}]", "number", "J", "total"),
    Column("model_j", "model\n[{unit}]", "number", "J", "total"),
    Column("relative_difference", "relative\ndifference", "exponent"),
)
_GRAM_COLUMNS = (
    *_HOST_COLUMNS[:2],
    Column("plugin_g", "plugin's\njoules [{unit}]", "number", "g", "grams"),
    Column("model_g", "model\n[{unit}]", "number", "g", "grams"),
    Column("carbon_relative_difference", "relative\ndifference", "exponent"),
)
_LAW_COLUMNS = (
    Column("scheduler", "scheduler"),
    Column("law", "law"),
    Column("direct", "from the\nrecords", "number"),
    Column("other", "by the law", "number"),
    Column("unit", ""),
    Column("relative_difference", "relative\ndifference", "exponent"),
    Column("why_not", "not held, since"),
)
#: What changes no energy of a host, and why.
_WITHOUT_EFFECT = {
    "idle_attribution": "it divides the energy among jobs, and that of hosts is compared",
    "depreciation_per_s": "hosts lose as much whatever runs on them, and no energy depends on it",
}


@with_scenario_options
def validate(
    asked: RunSpec,
    context: typer.Context,
    parameters: SchedulerParameters,
    export: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="Folder of 'gridsched run --export'.", show_default=False)
    ] = None,
    schedulers: SchedulersOption = None,
    outputs: Outputs = PRINTED,
) -> None:
    """Check the model's joules against SimGrid's energy plugin, host by host.

    Use it on new runs (options as in compare) or on an export. The model's joules come only from the
    trace and the formulas. With a carbon intensity, grams are compared, too: SimGrid's joules are read
    at each change of the intensity. It also checks laws that hold for every run: Little's law, and for
    equal hosts that stay on, the energy by the time that they compute.

    Examples
    --------
    gridsched validate --platform platforms/ex_a.xml --workload examples/ex_a.csv
    --schedulers wqr,lecsa

    gridsched run --platform platforms/ex_a.xml --workload examples/ex_a.csv --export out

    gridsched validate out

    Exit status: 0 all agree to 1e-9 relative (and 1e-9 s of SimGrid's clock an event), 1 some differ or a run failed,
    2 bad input.
    """
    inputs = paths_read(asked)
    outputs.check(inputs)
    failures: list[str] = []
    if export is not None:
        _refuse_beside(export, context)
        rows, laws = _rows_of_export(export)
    else:
        if asked.settings.driver == "reference":
            raise InputError("The reference driver has no energy plugin; use --driver simgrid.")
        refuse_without_effect(asked, "validate", _WITHOUT_EFFECT)
        scenarios = scenarios_of(schedulers, asked, parameters, meters_carbon=True)
        rows, laws, failures = _rows_of_runs(scenarios, quiet=outputs.quiet or outputs.json)
    bad = [row for row in rows if not _agrees(row)]
    broken = [law for law in laws if law["why_not"] is None and not law["relative_difference"] <= TOLERANCE]
    has_grams = any("model_g" in row for row in rows)
    whole = {
        "tolerance": ENERGY_TOLERANCE,
        "differences": len(bad) + len(broken),
        "hosts": rows,
        "laws": laws,
        "failures": failures,
    }
    if outputs.write(rows, whole) and rows:
        out = console()
        print_table(out, _HOST_COLUMNS, rows, "Energy by SimGrid's plugin and by the model")
        if has_grams:
            _print_grams(out, [row for row in rows if "model_g" in row])
        out.print()
        print_table(out, _LAW_COLUMNS, laws, "What holds of every run")
        if not bad and not broken and not failures:
            largest = max(ENERGY_TOLERANCE, *(row["relative_difference"] for row in rows))
            out.print(f"All {len(rows)} rows agree to {largest:.3g} relative.")
    for row in bad:
        say(
            f"{row['scheduler']}: host {row['host']!r}: plugin {row['plugin_j']!r} J, model "
            f"{row['model_j']!r} J, relative difference {row['relative_difference']:.3g}"
            + (f"; grams {row['plugin_g']!r} and {row['model_g']!r}" if "model_g" in row else "")
        )
    for law in broken:
        say(f"{law['scheduler']}: {law['law']}: {law['direct']!r} {law['unit']} and {law['other']!r} {law['unit']}")
    report_failures(failures)
    if bad or broken:
        raise typer.Exit(1)


def _refuse_beside(export: Path, context: typer.Context) -> None:
    """Refuse options of runs beside an export, whose run is over."""
    outputs = {each.name for each in fields(Outputs)}
    for each in context.command.params:
        source = context.get_parameter_source(each.name or "")
        if each.name not in {"export", *outputs} and source is not None and source.name == "COMMANDLINE":
            raise InputError(f"{export}: its run is over, so {each.opts[0]} has no effect beside DIR. Leave it out.")


def _agrees(row: Mapping[str, Any]) -> bool:
    """Whether plugin and model agree on a host's joules, and on its grams where these are known."""
    differences = (row["relative_difference"], row.get("carbon_relative_difference", 0.0))
    return all(each <= row["tolerance"] for each in differences)


def _print_grams(out: Console, rows: Sequence[Mapping[str, Any]]) -> None:
    out.print()
    print_table(
        out, _GRAM_COLUMNS, rows, "Carbon by SimGrid's joules at each change of the intensity, and by the model"
    )


def _laws(scheduler: str, trace: Trace, energy: HostEnergy) -> list[dict[str, Any]]:
    """Return a row for each law of any run."""
    return [
        {
            "scheduler": scheduler,
            "law": each.name,
            "unit": each.unit,
            **{
                name: None if each.why_not else getattr(each, name)
                for name in ("direct", "other", "relative_difference")
            },
            "why_not": each.why_not or None,
        }
        for each in identities_of(trace, energy)
    ]


def _rows_of_export(folder: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    from gridsched.export.export import read_export  # pandas is slow to load

    export = read_export(folder)
    if export.plugin_j is None:
        raise InputError(f"{folder}: was not made by the SimGrid driver; no plugin joules in it.")
    if export.trace.carbon is not None:
        warn([f"{folder}: an export holds SimGrid's joules of the whole run alone, so its grams are not compared."])
    name = str(export.provenance.get("scheduler", ""))
    energy = trace_energy(export.trace)
    rows = [{"scheduler": name, **row} for row in compare_energy(export.trace, export.plugin_j, energy)]
    return rows, _laws(name, export.trace, energy)


def _accept_any(result: RunResult) -> None:
    """Let every run pass: a difference is a row of the table here."""


def _rows_of_runs(
    scenarios: Mapping[str, LoadedScenario], *, quiet: bool
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[str]]:
    results, failures = run_each(scenarios, quiet=quiet, accept=_accept_any)
    rows: list[dict[str, Any]] = []
    laws: list[dict[str, Any]] = []
    for id, result in results.items():
        grams = {each["host"]: each for each in carbon_check(result)}
        rows += [{"scheduler": id, **row, **grams.get(row["host"], {})} for row in energy_check(result)]
        laws += _laws(id, result.trace, result.energy)
    return rows, laws, failures
