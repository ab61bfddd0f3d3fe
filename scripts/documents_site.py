"""Prepare the documents for a generator of sites: links out of docs/, notes on code, pages of Python.

``python scripts/documents_site.py`` writes build/documents/, plain Markdown that any generator reads which
takes mkdocs.yml; 'make docs' lets Zensical build the site of it. Files of the repository that a document
links to are copied into `repository/`; Markdown among them becomes a page.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
import gridsched  # noqa: E402  # that of this checkout, of which nothing is installed
from gridsched import formulas, linear  # noqa: E402

PREPARED = ROOT / "build" / "documents"
COPIES = "repository"
#: Pages of Python by name: title, and the rooms whose public names it lists.
PYTHON_PAGES = {
    "runs": ("Runs, comparisons, studies", ("runs", "scenario", "sim", "analysis", "campaign", "export", "optimize")),
    "workloads": ("Platforms, tasks, traces", ("model", "platform_io", "workloads")),
    "schedulers": ("Schedulers of your own", ("policy", "schedulers", "testing")),
    "figures": ("Figures", ("figures",)),
    "metrics": ("Metrics", ("metrics",)),
    "formulas": ("Formulas and linear programs", ("formulas", "linear")),
}
#: What other public modules offer, and types that public functions take or return.
HANDED_OUT = {
    "formulas": tuple(formulas.__all__),
    "linear": tuple(linear.__all__),
    "model.estimates": ("Estimates",),
    "model.trace": ("Trace",),
    "policy.state": ("EnergyState", "NodesState", "State"),
    "testing": ("check_scheduler",),
}
_LINK = re.compile(r"(?<=\]\()([^)\s#]+)(?=[)#])")
_FENCE = re.compile(r"^( *```)(\w+)[ \t]+(\S.*)$", re.MULTILINE)


def home_of(page: str) -> str:
    """Return where a page's text lies in the repository; links in it start from there.

    Parameters
    ----------
    page : str
        Its path within the site's sources.
    """
    inside = page.removeprefix(f"{COPIES}/")
    return inside if inside != page else f"docs/{page}"


def rewritten(link: str, page: str) -> str:
    """Return a relative link of a page as it must read on the site.

    Parameters
    ----------
    link : str
        As in the repository.
    page : str
        Path of the page within the site's sources.
    """
    if re.match(r"[a-z]+:", link):
        return link
    target = posixpath.normpath(posixpath.join(posixpath.dirname(home_of(page)), link))
    inside = target.removeprefix("docs/")
    on_site = inside if inside != target else f"{COPIES}/{target}"
    return posixpath.relpath(on_site, posixpath.dirname(page) or ".")


def with_plain_fences(text: str) -> str:
    """Return Markdown whose code blocks name a language and a title, and nothing else.

    A block that names a file shows that name; words for the tests, as `long`, go.
    """

    def plain(match: re.Match[str]) -> str:
        fence, language, words = match.groups()
        return f'{fence}{language} title="{words}"' if "/" in words else f"{fence}{language}"

    return _FENCE.sub(plain, text)


def linked_files() -> set[str]:
    """Return the files outside docs/ that pages link to, and those that these link to."""
    found: set[str] = set()
    todo = [f"docs/{path.relative_to(ROOT / 'docs')}" for path in (ROOT / "docs").rglob("*.md")]
    while todo:
        document = todo.pop()
        text = (ROOT / document).read_text(encoding="utf-8")
        for link in _LINK.findall(text):
            target = posixpath.normpath(posixpath.join(posixpath.dirname(document), link))
            outside = not target.startswith("docs/") and (ROOT / target).is_file()
            if outside and target not in found:
                found.add(target)
                todo += [target] if target.endswith(".md") else []
    return found


def documented_names() -> dict[str, list[str]]:
    """Return what has a place on a page, by module: what ``import gridsched`` offers, and what that hands out."""
    names = {module: set(each) for module, each in gridsched._HOME.items()}
    for module, each in HANDED_OUT.items():
        names.setdefault(module, set()).update(each)
    return {module: sorted(each) for module, each in names.items()}


def python_page(page: str) -> str:
    """Return a page of Python: how its names are imported, and each for mkdocstrings to fill in."""
    title, rooms = PYTHON_PAGES[page]
    modules = {module: names for module, names in documented_names().items() if module.partition(".")[0] in rooms}
    offered = sorted(name for names in modules.values() for name in names if name in gridsched.__all__)
    folded = textwrap.fill(", ".join(offered), 88, initial_indent=" " * 4, subsequent_indent=" " * 4)
    imports = [f"from gridsched import (\n{folded},\n)"] if offered else []
    for module, names in modules.items():
        handed_out = [name for name in names if name not in gridsched.__all__]
        imports += [f"from gridsched.{module} import {', '.join(handed_out)}"] if handed_out else []
    lines = [f"# {title}", "", "```python", *imports, "```", ""]
    for module, names in modules.items():
        lines += [f"::: gridsched.{module}.{name}\n" for name in names]
    return "\n".join(lines)


def pages() -> Iterator[tuple[str, Path]]:
    """Yield path on the site and file of all that is copied."""
    for path in sorted((ROOT / "docs").rglob("*")):
        if path.suffix in (".md", ".png", ".csv", ".css") and path.name != "claims.csv":  # claims.md has those
            yield path.relative_to(ROOT / "docs").as_posix(), path
    for name in sorted(linked_files()):
        yield f"{COPIES}/{name}", ROOT / name


def prepare(folder: Path = PREPARED) -> None:
    """Write the documents as a generator needs them; what lay in the folder is removed."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, path in pages():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            text = _LINK.sub(lambda match, page=name: rewritten(match[1], page), path.read_text(encoding="utf-8"))
            target.write_text(with_plain_fences(text), encoding="utf-8")
        else:
            shutil.copyfile(path, target)
    (folder / "python").mkdir()
    for page in PYTHON_PAGES:
        (folder / "python" / f"{page}.md").write_text(python_page(page), encoding="utf-8")


if __name__ == "__main__":
    prepare()
