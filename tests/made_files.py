"""Workbooks made byte by byte, archives with one thing changed, and copies of the package."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

# Workbooks for tests of what reads tables.


def xlsx(sheets: list[list[list[str]]]) -> bytes:
    """Return a minimal XLSX file with the given sheets of rows of cells."""
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    numbers = range(1, len(sheets) + 1)
    kinds = "".join(
        f'<Override PartName="/xl/worksheets/sheet{n}.xml" ContentType="application/'
        'vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/>'
        for n in numbers
    )
    files = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types"><Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override '
        'PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.'
        f'spreadsheetml.sheet.main+xml"/>{kinds}</Types>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r" '
        f'Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets>'
        + "".join(f'<sheet name="s{n}" sheetId="{n}" r:id="r{n}"/>' for n in numbers)
        + "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships">'
        + "".join(
            f'<Relationship Id="r{n}" Type="{office}/worksheet" Target="worksheets/sheet{n}.xml"/>' for n in numbers
        )
        + "</Relationships>",
    }
    for n, rows in zip(numbers, sheets, strict=True):
        body = "".join(
            f'<row r="{r}">'
            + "".join(
                f'<c r="{chr(65 + c)}{r}"><v>{cell}</v></c>'
                if cell.replace(".", "").isdigit()
                else f'<c r="{chr(65 + c)}{r}" t="inlineStr"><is><t>{cell}</t></is></c>'
                for c, cell in enumerate(row)
            )
            + "</row>"
            for r, row in enumerate(rows, start=1)
        )
        sheet = f'<worksheet xmlns="{main}"><sheetData>{body}</sheetData></worksheet>'
        files[f"xl/worksheets/sheet{n}.xml"] = sheet
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, '<?xml version="1.0"?>' + text)
    return buffer.getvalue()


# Archives of exports with something changed in them, for tests of how they are read.


def edit_archive(folder: Path, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> None:
    """Let ``change(description, arrays)`` alter the archive of an export in place."""
    path = folder / "trace.npz"
    with np.load(path) as archive:
        arrays = {name: archive[name].copy() for name in archive.files}
    description = json.loads(arrays.pop("description").tobytes())
    change(description, arrays)
    text = np.frombuffer(json.dumps(description).encode(), np.uint8)
    np.savez_compressed(path, description=text, **arrays)


# Copies of the package, which would take seconds to compile: what `shutil.copytree` leaves out of a folder.


def caches(folder: str, names: list[str]) -> list[str]:
    """Return what lies beside bytecode: numba's files, and what another process is writing."""
    return [name for name in names if not name.endswith(".pyc")] if Path(folder).name == "__pycache__" else []


def caches_and_loops(folder: str, names: list[str]) -> list[str]:
    """Return the same, and the library of loops."""
    return [*caches(folder, names), *(name for name in names if name.startswith("_loops_"))]
