"""What the site of the documents makes of links and code blocks; 'make docs' builds it."""

from __future__ import annotations

import importlib.util
import re
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
    """What ``import gridsched`` offers is on the pages of Python, once, with the line that imports it."""
    pages = [site.python_page(page) for page in site.PYTHON_PAGES]
    shown = [line.rpartition(".")[2] for page in pages for line in page.splitlines() if line.startswith(":::")]
    assert set(gridsched.__all__) <= set(shown)
    assert len(shown) == len(set(shown))
    for page in pages:
        imports = page.partition("```python\n")[2].partition("```")[0]
        names: dict[str, object] = {}
        exec(imports, names)
        assert set(names) - {"__builtins__"} == {
            line.rpartition(".")[2] for line in page.splitlines() if line.startswith(":::")
        }


def test_the_navigation_has_every_page(site: ModuleType, tmp_path: Path):
    """Each document stands in mkdocs.yml once; each entry there is a page that is written."""
    site.prepare(tmp_path)
    written = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.md")}
    entries = re.findall(r"^ +- [^:\n]+: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), flags=re.MULTILINE)
    own = {name for name in written if not name.startswith("repository/") and name.count("/") < 2}
    assert sorted(entries) == sorted({*own, *(name for name in entries if name.startswith("repository/"))})
    assert set(entries) <= written


def test_links_of_the_prepared_pages_lead_somewhere(site: ModuleType, tmp_path: Path):
    """Copies and pages stand where the rewritten links look for them."""
    site.prepare(tmp_path)
    for path in tmp_path.rglob("*.md"):
        prose = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        links = [link for link in re.findall(r"\]\(([^)\s#]+)[)#]", prose) if "://" not in link]
        assert [link for link in links if not (path.parent / link).exists()] == [], path
