"""All cases with known results, and their outcomes as one table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from gridsched.analysis.texts import markdown_row
from gridsched.errors import InputError, did_you_mean
from gridsched.reproduction.known import backfilling, carbon, energy_budgets, queues, real_slurm
from gridsched.reproduction.known.cases import Case

#: In the order of the table; a further room adds its own here.
CASES: tuple[Case, ...] = (*backfilling.CASES, *real_slurm.CASES, *energy_budgets.CASES, *carbon.CASES, *queues.CASES)
HEADER = ("what", "printed", "ours", "off by", "verdict")


def chosen_cases(only: Sequence[str] | None) -> tuple[Case, ...]:
    """Return the cases whose ids begin with one of some texts; all without any.

    Raises
    ------
    InputError
        If a text begins none.
    """
    ids = [case.id for case in CASES]
    for text in only or ():
        if not any(id.startswith(text) for id in ids):
            raise InputError(
                f"--only {text}: no case is called so. {did_you_mean(text, ids)}Allowed: {', '.join(ids)}."
            )
    return tuple(case for case in CASES if only is None or case.id.startswith(tuple(only)))


def cells(record: dict[str, Any]) -> tuple[str, ...]:
    """Return what the table shows of a record of `Outcome.record`."""
    unit = f" {record['unit']}" if record["unit"] else ""
    if record["ours"] is None:
        return record["what"], f"{record['printed']}{unit}", "", "", record["verdict"]
    if record["low"] is None:
        digits = max(len(record["printed"].replace(".", "").lstrip("0")), 4)
        printed, ours = record["printed"], f"{record['ours']:.{digits}g}"
    else:
        printed = f"{float(record['printed']):.5g}"
        ours = f"{record['ours']:.5g} ({record['low']:.5g} to {record['high']:.5g})"
    off = "" if record["off"] is None else "0" if abs(record["off"]) < 1e-9 else f"{100 * record['off']:+.1f} %"
    return record["what"], f"{printed}{unit}", ours, off, record["verdict"]


def markdown(records: Iterable[dict[str, Any]]) -> str:
    """Return records as a table for each source, with commands and why rows miss or are skipped."""
    text, source = "", None
    notes: dict[str, list[str]] = {}
    for record in records:
        if record["source"] != source:
            text += "" if source is None else "\n"
            source = record["source"]
            rows = [[*HEADER, "command"], ["---"] * 6]
            text += f"**{source}**\n\n" + "".join(f"{markdown_row(row)}\n" for row in rows)
        text += f"{markdown_row([*cells(record)])[:-2]} | `{record['command']}` |\n"
        if record["why"]:
            notes.setdefault(record["why"], []).append(record["verdict"])
    lines = [f"- {len(rows)} {'row' if len(rows) == 1 else 'rows'} ({rows[0]}): {why}." for why, rows in notes.items()]
    return text + "".join(f"\n{line}" for line in lines) + ("\n" if lines else "")
