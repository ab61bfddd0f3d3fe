"""What an export is, for repositories of research data: an RO-Crate, JSON-LD in one file beside the others."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import PurePath
from typing import Any

from gridsched.files.json_files import json_text

#: The file that makes a folder a crate.
CRATE = "ro-crate-metadata.json"
#: The file of an export that holds the provenance.
PROVENANCE = "provenance.json"
_VERSION = "https://w3id.org/ro/crate/1.1"
_MEDIA_TYPES = {".csv": "text/csv", ".json": "application/json", ".npz": "application/zip"}
#: Programs whose versions a run's provenance has, and what each is called.
_SOFTWARE = {"gridsched": "gridsched", "simgrid": "SimGrid", "python": "Python", "numpy": "NumPy"}


def crate_text(files: Mapping[str, str], provenance: Mapping[str, Any], *, published: date) -> str:
    """Return the metadata of an export.

    Parameters
    ----------
    files : mapping of str to str
        Name of each file -> what it holds.
    provenance : mapping
        Of the run: ``scheduler``, ``workload``, ``platform``, ``inputs`` (file -> SHA-256), ``command``, versions.
    published : date
        The day on which the export is written.

    Returns
    -------
    str
        JSON-LD. The license of the data is not in it: only its owner can say it.

    References
    ----------
    .. [1] P. Sefton et al., "RO-Crate Metadata Specification 1.1", 2020. https://w3id.org/ro/crate/1.1
    """
    scheduler, workload = provenance.get("scheduler", "a scheduler"), provenance.get("workload", "a workload")
    software = [
        {"@id": f"#{key}", "@type": "SoftwareApplication", "name": name, "softwareVersion": str(provenance[key])}
        for key, name in _SOFTWARE.items()
        if provenance.get(key) is not None
    ]
    inputs = [
        {
            "@id": f"#sha256-{digest}",
            "@type": "CreativeWork",
            "name": PurePath(name).name,
            "identifier": f"sha256:{digest}",
        }
        for name, digest in dict(provenance.get("inputs") or {}).items()
    ]
    run = {
        "@id": "#run",
        "@type": "CreateAction",
        "name": f"Simulation of {workload} under {scheduler}",
        **({"description": provenance["command"]} if provenance.get("command") else {}),
        "instrument": _references(software),
        "object": _references(inputs),
        "result": {"@id": "./"},
    }
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": f"{scheduler} on {workload}",
        "description": f"Records of a simulated run of gridsched: {workload} on {provenance.get('platform')} under "
        f"{scheduler}, seed {provenance.get('seed')}. {PROVENANCE} has all that decides it.",
        "datePublished": published.isoformat(),
        "hasPart": [{"@id": name} for name in files],
        "mentions": {"@id": "#run"},
    }
    parts = [
        {"@id": name, "@type": "File", "name": name, "description": what, "encodingFormat": _media_type(name)}
        for name, what in files.items()
    ]
    descriptor = {"@id": CRATE, "@type": "CreativeWork", "conformsTo": {"@id": _VERSION}, "about": {"@id": "./"}}
    graph = [descriptor, root, *parts, run, *_distinct(inputs), *software]
    return json_text({"@context": f"{_VERSION}/context", "@graph": graph})


def _media_type(name: str) -> str:
    return _MEDIA_TYPES[PurePath(name).suffix]


def _references(entities: list[dict[str, str]]) -> list[dict[str, str]]:
    return [{"@id": each["@id"]} for each in _distinct(entities)]


def _distinct(entities: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return each entity once: two files may have the same content."""
    return list({each["@id"]: each for each in entities}.values())
