"""What a folder of results holds, for repositories of research data: an RO-Crate, one file of JSON-LD."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any

from gridsched.files.json_files import json_text

#: The file that makes a folder a crate.
CRATE = "ro-crate-metadata.json"
_VERSION = "https://w3id.org/ro/crate/1.1"
_MEDIA_TYPES = {
    ".csv": "text/csv",
    ".json": "application/json",
    ".npz": "application/zip",
    ".parquet": "application/vnd.apache.parquet",
}
#: Programs whose versions are known, and what each is called.
_SOFTWARE = {"gridsched": "gridsched", "simgrid": "SimGrid", "python": "Python", "numpy": "NumPy"}


@dataclass(frozen=True)
class Origin:
    """How the content of a folder was made.

    Attributes
    ----------
    name : str
        Of the simulation.
    versions : mapping of str to str
        Of programs, by the keys of a run's provenance; other keys are left out.
    inputs : sequence of (str, str)
        Name and SHA-256 of each file.
    command : str, optional
        The command line.
    """

    name: str
    versions: Mapping[str, Any]
    inputs: Sequence[tuple[str, str]]
    command: str | None = None


def crate_text(name: str, description: str, files: Mapping[str, str], origin: Origin) -> str:
    """Return the metadata of a folder, published today.

    Parameters
    ----------
    name, description : str
        Of what the folder holds.
    files : mapping of str to str
        Path of each file in the folder -> what it holds.
    origin : Origin

    Returns
    -------
    str
        JSON-LD. The license of the data is missing, because only their owner knows it.

    References
    ----------
    .. [1] P. Sefton et al., "RO-Crate Metadata Specification 1.1", 2020. https://w3id.org/ro/crate/1.1
    """
    software = [
        {"@id": f"#{key}", "@type": "SoftwareApplication", "name": called, "softwareVersion": str(origin.versions[key])}
        for key, called in _SOFTWARE.items()
        if origin.versions.get(key) is not None
    ]
    inputs = [_input(path, digest) for path, digest in origin.inputs]
    action = {
        "@id": "#run",
        "@type": "CreateAction",
        "name": origin.name,
        **({"description": origin.command} if origin.command else {}),
        "instrument": _references(software),
        "object": _references(inputs),
        "result": {"@id": "./"},
    }
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": name,
        "description": description,
        "datePublished": datetime.now(UTC).date().isoformat(),
        "hasPart": [{"@id": path} for path in files],
        "mentions": {"@id": "#run"},
    }
    parts = [_part(path, what) for path, what in files.items()]
    descriptor = {"@id": CRATE, "@type": "CreativeWork", "conformsTo": {"@id": _VERSION}, "about": {"@id": "./"}}
    graph = [descriptor, root, *parts, action, *_distinct(inputs), *software]
    return json_text({"@context": f"{_VERSION}/context", "@graph": graph})


def _input(path: str, digest: str) -> dict[str, str]:
    return {
        "@id": f"#sha256-{digest}",
        "@type": "CreativeWork",
        "name": PurePath(path).name,
        "identifier": f"sha256:{digest}",
    }


def _part(path: str, what: str) -> dict[str, str]:
    kind = _MEDIA_TYPES.get(PurePath(path).suffix)
    part = {"@id": path, "@type": "File", "name": path, "description": what}
    return part if kind is None else part | {"encodingFormat": kind}


def _references(entities: list[dict[str, str]]) -> list[dict[str, str]]:
    return [{"@id": each["@id"]} for each in _distinct(entities)]


def _distinct(entities: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return each entity once: two files may have the same content."""
    return list({each["@id"]: each for each in entities}.values())
