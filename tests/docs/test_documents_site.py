"""What the site of the documents makes of links and code blocks; 'make docs' builds it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

import gridsched

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def site() -> ModuleType:
    """scripts/documents_site.py, which is no part of the package."""
    path = ROOT / "scripts" / "documents_site.py"
    spec = importlib.util.spec_from_file_location("documents_site", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("link", "page", "on_site"),
    [
        ("lecsa.md", "index.md", "lecsa.md"),
        ("../README.md", "index.md", "repository/README.md"),
        ("../bounds.md", "studies/lecsa.md", "../bounds.md"),
        (
            "../../gridsched/reproduction/studies/a.toml",
            "studies/b.md",
            "../repository/gridsched/reproduction/studies/a.toml",
        ),
        ("docs/figures/gantt.png", "repository/README.md", "../figures/gantt.png"),
        ("examples/bag.toml", "repository/README.md", "examples/bag.toml"),
        ("../docs/files.md", "repository/platforms/README.md", "../../files.md"),
        ("https://simgrid.org", "index.md", "https://simgrid.org"),
    ],
)
def test_links_lead_to_the_copies(site: ModuleType, link: str, page: str, on_site: str):
    """A link of the repository reads as it must where its page stands on the site."""
    assert site.rewritten(link, page) == on_site


def test_code_blocks_keep_language_and_file(site: ModuleType):
    """Words for the tests go; the name of a file becomes the block's title."""
    text = "```console long\n$ ls\n```\n```toml examples/bag.toml\n```\n```python\n```"
    assert site.with_plain_fences(text) == (
        '```console\n$ ls\n```\n```toml title="examples/bag.toml"\n```\n```python\n```'
    )


def test_linked_files_exist_and_lie_outside_the_documents(site: ModuleType):
    """The README is copied, with what it links to; nothing of docs/ is copied twice."""
    linked = site.linked_files()
    assert {"README.md", "platforms/README.md", "gridsched/reproduction/studies/lecsa.toml"} <= linked
    assert all((ROOT / name).is_file() and not name.startswith("docs/") for name in linked)


def test_every_public_name_has_a_page(site: ModuleType):
    """What ``import gridsched`` offers is on the pages of Python."""
    shown = {name for names in site.documented_names().values() for name in names}
    assert set(gridsched.__all__) <= shown
