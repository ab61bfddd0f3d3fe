"""The number of the release is in several files of metadata: it is the same in all."""

from __future__ import annotations

import json
import re
from pathlib import Path

from gridsched import __version__

ROOT = Path(__file__).resolve().parents[1]


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_one_version_everywhere():
    """In the package, for citations, for CodeMeta, for Zenodo, and the newest release of CHANGES."""
    newest = re.findall(r"^## (\d+\.\d+\.\d+)", text("CHANGES.md"), re.M)[0]
    cited = re.findall(r"^version: (\S+)$", text("CITATION.cff"), re.M)
    found = {newest, *cited, json.loads(text("codemeta.json"))["version"], json.loads(text(".zenodo.json"))["version"]}
    assert len(cited) == 1
    assert found == {__version__}


def test_sections_of_changes():
    """Unreleased changes come first, if there are any; then releases with their dates, the newest first."""
    sections = re.findall(r"^## (.+)$", text("CHANGES.md"), re.M)
    released = sections[sections[0] == "Unreleased" :]
    found = [re.fullmatch(r"(\d+)\.(\d+)\.(\d+) \((\d{4}-\d{2}-\d{2})(?:, [a-z ]+)?\)", each) for each in released]
    assert released
    assert None not in found
    keys = [(tuple(map(int, each.groups()[:3])), each[4]) for each in found]
    assert keys == sorted(keys, reverse=True)
    assert all(text("CHANGES.md").count(f"\n## {each}\n") == 1 for each in sections)


def test_one_license_everywhere():
    """SPDX's name of it."""
    assert json.loads(text("codemeta.json"))["license"].endswith("/Apache-2.0")
    assert json.loads(text(".zenodo.json"))["license"] == "Apache-2.0"
    assert 'license = "Apache-2.0"' in text("pyproject.toml")
    assert "Apache License" in text("LICENSE")
