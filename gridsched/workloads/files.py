"""Input files of tasks: ``file,size_bytes,location``, one row for each place a file lies at."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gridsched.files.csv_files import Number, Text, read_csv
from gridsched.model.tasks import DataFiles

COLUMNS = {"file": Text(), "size_bytes": Number(), "location": Text()}


def read_data_files(path: str | Path) -> DataFiles:
    """Read where input files lie.

    Parameters
    ----------
    path : path
        CSV ``file,size_bytes,location``; a location is the name of a cluster (netzone) or of a
        host in it. A file with several rows lies at several places.

    Returns
    -------
    DataFiles

    Raises
    ------
    InputError
        Naming file, line and column of the first bad value.
    """
    sizes: dict[str, float] = {}
    places: dict[str, list[str]] = {}
    table = read_csv(path, COLUMNS)
    columns = (table[name] for name in COLUMNS)
    for row, (name, size, location) in enumerate(zip(*columns, strict=True)):
        if not name or ";" in name:
            raise table.fail(row, "file", "a name without ';' is needed")
        if not location:
            raise table.fail(row, "location", "the name of a cluster or host is needed")
        if sizes.setdefault(name, size) != size:
            legal = f"an earlier row gives {sizes[name]:g} for {name!r}"
            raise table.fail(row, "size_bytes", legal)
        places.setdefault(name, []).append(location)
    names = tuple(sizes)
    return DataFiles(
        names, np.array([sizes[n] for n in names]), tuple(tuple(places[n]) for n in names)
    )
