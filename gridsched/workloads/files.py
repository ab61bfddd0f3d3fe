"""Input files of tasks: ``file,size_bytes,location``, one row for each place a file lies at."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gridsched.files.input_files import read_text
from gridsched.model.tasks import DataFiles
from gridsched.workloads.table import read_rows


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
    for row in read_rows(path, read_text(path), ("file", "size_bytes", "location")):
        name, location = row.cells["file"], row.cells["location"]
        if not name or ";" in name:
            raise row.fail("file", "a name without ';' is needed")
        if not location:
            raise row.fail("location", "the name of a cluster or host is needed")
        size = row.number("size_bytes")
        if sizes.setdefault(name, size) != size:
            raise row.fail("size_bytes", f"an earlier row gives {sizes[name]:g} for {name!r}")
        places.setdefault(name, []).append(location)
    names = tuple(sizes)
    return DataFiles(
        names, np.array([sizes[n] for n in names]), tuple(tuple(places[n]) for n in names)
    )
