"""What mkdocs does not know of our documents: links out of docs/, notes on code, pages of Python.

mkdocs calls the functions by their names (`hooks` in mkdocs.yml). Files of the repository that a
document links to are copied into `repository/`; Markdown among them becomes a page.
"""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
COPIES = "repository"
#: Types that public functions take or return.
HANDED_OUT = {
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


def public_names() -> dict[str, list[str]]:
    """Return the names that ``import gridsched`` offers, by the modules they live in."""
    sys.path.insert(0, str(ROOT))
    import gridsched

    return {module: sorted(names) for module, names in gridsched._HOME.items()}


def documented_names() -> dict[str, list[str]]:
    """Return what has a page: the public names, and what these hand to their users."""
    pages = public_names()
    for module, names in HANDED_OUT.items():
        pages[module] = sorted({*pages.get(module, ()), *names})
    return pages


def python_page(module: str, names: list[str]) -> str:
    """Return the page of a module's public names; mkdocstrings fills it in."""
    lines = [f"# `gridsched.{module}`", ""]
    for name in names:
        lines += [f"::: gridsched.{module}.{name}", ""]
    return "\n".join(lines)


def on_config(config: Any) -> Any:
    """Complete the navigation: one entry a study, one a module."""
    for entry in config.nav:
        if "Studies" in entry:
            pages = sorted(path.name for path in (ROOT / "docs" / "studies").glob("*.md"))
            entry["Studies"] = [f"studies/{page}" for page in pages]
        elif "Python" in entry:
            modules = sorted(documented_names())
            entry["Python"] = [{module: f"python/{module}.md"} for module in modules]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the copies of linked files and the pages of Python."""
    from mkdocs.structure.files import File  # tests of the rest do without mkdocs

    for name in sorted(linked_files()):
        files.append(File.generated(config, f"{COPIES}/{name}", abs_src_path=str(ROOT / name)))
    for module, names in documented_names().items():
        content = python_page(module, names)
        files.append(File.generated(config, f"python/{module}.md", content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Rewrite a page's links and code blocks."""
    here = page.file.src_uri
    text = _LINK.sub(lambda match: rewritten(match[1], here), markdown)
    return with_plain_fences(text)
