"""The documents: links, tables, names, and the site made of them."""

from __future__ import annotations

import csv
import importlib.util
import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest
from document_blocks import DOCUMENTS, ROOT, blocks_of, name_of, prose_of
from typer.main import get_command

import gridsched
from gridsched import Scenario, run
from gridsched.cli.app import app, load_command
from gridsched.export.export import FILES, write_export
from gridsched.policy.base import Traits
from gridsched.policy.decisions import Decision
from gridsched.policy.registry import entries, scheduler_class
from gridsched.policy.state import State

# What the documents say of the code is what the code is.

DOCS = ROOT / "docs"
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*$", re.MULTILINE)
_ANCHOR = re.compile(r'<a id="([^"]+)"></a>')
#: "algorithms C3", "algorithms, E5", "algorithms B4 to B6", "algorithms C2.5, 8", ...
_CITATION = re.compile(
    r"[Aa]lgorithms(?:\.md)?,?\s+((?:F-\d{3}|0|[A-I](?:\d+(?:\.\d+)?)?)\b"
    r"(?:\s*(?:,|-|to|and)\s*(?:[A-I]\d+(?:\.\d+)?|\d+)\b)*)"
)
_ROWS = re.compile(r"(F-\d{3}),? rows? (\d+)(?: (?:and|to) (\d+))?")


def read(name: str) -> str:
    """Return the text of a document."""
    return (ROOT / name).read_text(encoding="utf-8")


def anchors_of(document: Path) -> set[str]:
    """Return the anchors that GitHub gives to a document's headings, and those it sets itself."""
    prose = prose_of(document)
    plain = (re.sub(r"[^\w\- ]", "", h.lower()) for h in _HEADING.findall(prose))
    return {heading.replace(" ", "-") for heading in plain} | set(_ANCHOR.findall(prose))


def sections_of(name: str, level: int) -> dict[str, str]:
    """Return the text below each heading of a level, without the marks around its words."""
    parts = re.split(rf"^{'#' * level} (.*)$", read(name), flags=re.MULTILINE)
    return {head.strip("` "): text for head, text in zip(parts[1::2], parts[2::2], strict=True)}


def load_benchmark_table() -> ModuleType:
    """Import benchmarks/table.py, which is not a part of the package."""
    spec = importlib.util.spec_from_file_location("table", ROOT / "benchmarks" / "table.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_links_lead_somewhere(document: Path):
    """Every link to a file or a heading of the repository has its target."""
    broken = []
    for target in _LINK.findall(prose_of(document)):
        if target.startswith(("https://", "http://")):
            continue
        path, _, anchor = target.partition("#")
        file = document if not path else (document.parent / path).resolve()
        if not file.exists() or (anchor and anchor not in anchors_of(file)):
            broken.append(target)
    assert broken == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_adjacent_brackets_are_code(document: Path):
    """Outside code ``a][b]`` is a reference to a definition, and the site's build refuses one that is missing."""
    prose = re.sub(r"`[^`]*`", "", prose_of(document))
    assert re.findall(r"[^\n]{0,30}\]\[[^\n]{0,30}", prose) == []


def test_all_pages_lists_all_documents():
    """docs/pages.md links to each document beside it and in studies/; those link to their files."""
    linked = set(_LINK.findall(read("docs/pages.md")))
    own = [*DOCS.glob("*.md"), *DOCS.glob("studies/*.md")]
    assert {str(path.relative_to(DOCS)) for path in own} - {"pages.md"} <= linked
    families = {str(path.relative_to(DOCS)) for path in DOCS.glob("schedulers/*.md")}
    assert families <= set(_LINK.findall(read("docs/schedulers.md")))
    for study in DOCS.glob("studies/*.md"):
        kept = [*DOCS.glob(f"studies/{study.stem}/*.md"), *DOCS.glob(f"studies/{study.stem}/*.png")]
        own = {str(path.relative_to(study.parent)) for path in kept}
        assert own <= set(_LINK.findall(read(str(study.relative_to(ROOT)))))


def cited_sections(citation: str) -> Iterator[str]:
    """Yield the anchor of each section that a citation names: of "C2.5, 8" c2-5 and c2-8."""
    item_of = ""
    for name in re.findall(r"F-\d{3}|[A-I](?:\d+(?:\.\d+)?)?|\d+", citation):
        if not name.isdigit():
            item_of = name.partition(".")[0] if "." in name else ""
            yield name.lower().replace(".", "-")
        elif name == citation:
            yield f"s{name}"
        elif item_of:
            yield f"{item_of.lower()}-{name}"


def test_citations_of_algorithms_resolve():
    """Each "algorithms C3" in code, tests and documents is a section, each row of F one there."""
    document = DOCS / "algorithms.md"
    anchors = set(_ANCHOR.findall(prose_of(document)))
    tables = sections_of("docs/algorithms.md", 2)
    cited, wrong = 0, []
    for folder, suffix in itertools.product(("gridsched", "tests", "docs"), ("py", "md", "toml")):
        for path in (ROOT / folder).rglob(f"*.{suffix}"):
            # a citation may go on in the next line, of a comment, too
            text = re.sub(r"\n\s*#?:?\s*", " ", path.read_text(encoding="utf-8"))
            names = [name for each in _CITATION.findall(text) for name in cited_sections(each)]
            for table, *rows in _ROWS.findall(text):
                shown = re.findall(r"^\| (\d+) \|", tables.get(table, ""), flags=re.MULTILINE)
                missing = [row for row in rows if row and row not in shown]
                wrong += [f"{name_of(path)}: {table} row {row}" for row in missing]
            wrong += [f"{name_of(path)}: {name}" for name in names if name not in anchors]
            cited += len(names)
    assert cited
    assert wrong == []


def test_every_scheduler_is_documented_with_its_parameters():
    """docs/schedulers/ has a section for each id, with just its parameters and defaults."""
    sections: dict[str, str] = {}
    for page in DOCS.glob("schedulers/*.md"):
        sections |= sections_of(str(page.relative_to(ROOT)), 2)
    wrong = []
    for entry in entries():
        if not entry.target.startswith("gridsched."):
            continue  # another test's
        text = sections.get(entry.id)
        if text is None:
            wrong.append(f"{entry.id}: no section")
            continue
        shown = dict(re.findall(r"^\| `(\w+)` \| `(.*?)` \|", text, flags=re.MULTILINE))
        known = {k: repr(v) for k, v in scheduler_class(entry.id).parameter_defaults().items()}
        if shown != known:
            wrong.append(f"{entry.id}: shows {shown}, has {known}")
        if "- Source:" not in text:
            wrong.append(f"{entry.id}: no source")
    assert not wrong, "\n".join(wrong)


def commands_below(command: object, words: str) -> Iterator[str]:
    """Yield the full name of each command that does something."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield words
    for name, child in (inner or {}).items():
        yield from commands_below(child, f"{words} {name}")


def test_all_commands_are_listed():
    """The table of docs/commands.md has each command, and no command that does not exist."""
    known = {
        words
        for name in get_command(app).list_commands(None)
        for words in commands_below(load_command(name), f"gridsched {name}")
    }
    rows = re.findall(r"^\| `(gridsched [^|]*)` \|", read("docs/commands.md"), flags=re.MULTILINE)
    shown = {name for row in rows for name in known if re.match(rf"{name}\b", row)}
    assert shown == known
    assert all(any(re.match(rf"{name}\b", row) for name in known) for row in rows)


@pytest.mark.parametrize(
    ("name", "benchmark"),
    [("DRIVERS", "drivers"), ("COMMANDS", "whole_commands"), ("PEERS", "peers"), ("VERSIONS", "versions")],
)
def test_the_document_shows_the_measured_benchmarks(name: str, benchmark: str):
    """The tables of docs/performance.md are renderings of what the benchmarks have written."""
    results = json.loads((ROOT / "benchmarks/results.json").read_text())[benchmark]
    table = getattr(load_benchmark_table(), name)
    assert table.shown_in_document() == table.render(results).strip()


def test_every_decision_and_trait_is_documented():
    """one_instant.md explains each decision, writing_a_scheduler.md each trait."""
    decisions = {kind.__name__ for kind in Decision.__subclasses__()}
    rows = re.findall(r"^\| `(\w+)\(", read("docs/one_instant.md"), flags=re.MULTILINE)
    assert set(rows) == decisions
    told = read("docs/writing_a_scheduler.md")
    assert [field.name for field in fields(Traits) if f"`{field.name}`" not in told] == []
    assert [name for name in sorted(decisions) if f"`{name}`" not in told] == []


def test_every_part_of_the_state_is_documented():
    """writing_a_scheduler.md describes everything that a scheduler sees."""
    told = read("docs/writing_a_scheduler.md")
    public = {name for name in vars(State) if not name.startswith("_")} - {"renew"}
    public |= {"now", "tasks", "estimates", "tasks_to_arrive"}
    missing = [name for name in sorted(public) if not re.search(rf"`{name}(\(\w*\))?`", told)]
    assert missing == []


def test_every_file_and_column_of_an_export_is_documented(tmp_path: Path):
    """files.md has a section for each table of an export, with all its columns."""
    scenario = Scenario(ROOT / "platforms/ex_a.xml", ROOT / "examples/ex_a.csv", "wqr", driver="reference")
    result = run(scenario)
    write_export(result.trace, None, result.provenance, tmp_path / "out", workload_name="ex_a")
    sections = sections_of("docs/files.md", 3)
    text = read("docs/files.md")
    assert [name for name in sorted(FILES) if name not in text] == []
    wrong = []
    for path in sorted((tmp_path / "out").glob("*.csv")):
        with path.open(newline="") as stream:
            columns = next(csv.reader(stream))
        section = sections.get(path.name, "")
        wrong += [f"{path.name}: {name}" for name in columns if f"`{name}`" not in section]
    assert not wrong, "\n".join(wrong)


def test_every_metric_of_a_run_is_documented():
    """files.md explains the keys of a run's summary."""
    scenario = Scenario(ROOT / "platforms/ex_a.xml", ROOT / "examples/ex_a.csv", "wq", driver="reference")
    text = read("docs/files.md")
    grouped = re.compile(r"tasks_\w+|max_\w+")  # described together
    missing = [
        name
        for name in run(scenario).summary()
        if f"`{name}`" not in text and name != "scheduler" and not grouped.fullmatch(name)
    ]
    assert missing == []


def test_citation_has_the_version():
    """CITATION.cff cites the present version."""
    assert f"version: {gridsched.__version__}" in read("CITATION.cff")


# Tables of the documents that follow from the code agree with the code.


@pytest.fixture(scope="module")
def tables() -> Iterator[ModuleType]:
    """docs/generated_tables.py, which is not a part of the package."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "docs"))
        spec = importlib.util.spec_from_file_location("generated_tables", ROOT / "docs" / "generated_tables.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_generated_tables_are_up_to_date(document: Path, tables: ModuleType):
    """Where this fails: python docs/generated_tables.py."""
    text = document.read_text(encoding="utf-8")
    assert text == tables.up_to_date(text)


def test_every_table_stands_in_a_document(tables: ModuleType):
    """No table is written for nothing, and each is found."""
    whole = "\n".join(document.read_text(encoding="utf-8") for document in DOCUMENTS)
    for name in tables.TABLES:
        assert f"<!-- table: {name} -->" in whole


def test_every_number_of_a_paper_is_in_the_figure(tables: ModuleType):
    """The data beside the figure are those of the published claims. Where this fails: see above."""
    data = tables.published_claims.FIGURE.with_suffix(".csv")
    written = pd.read_csv(data, dtype={"paper": str})
    now = tables.published_claims.data_frame()
    assert written[["study", "claim", "verdict"]].equals(now[["study", "claim", "verdict"]])
    for column in ("printed", "ours", "low", "high"):
        expected = pytest.approx(now[column].to_numpy(), nan_ok=True, rel=1e-5)
        assert written[column].to_numpy() == expected


# What the site of the documents makes of links and code blocks; 'make docs' builds it.


@pytest.fixture(scope="module")
def site() -> ModuleType:
    """scripts/documents_site.py, which is not a part of the package."""
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
    """A link of the repository reads as it must where its page is on the site."""
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
    """Each document is listed in mkdocs.yml once; each entry there is a page that is written."""
    site.prepare(tmp_path)
    written = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.md")}
    entries = re.findall(r"^ +- [^:\n]+: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), flags=re.MULTILINE)
    own = {name for name in written if not name.startswith("repository/") and name.count("/") < 2}
    assert sorted(entries) == sorted({*own, *(name for name in entries if name.startswith("repository/"))})
    assert set(entries) <= written


def test_links_of_the_prepared_pages_lead_somewhere(site: ModuleType, tmp_path: Path):
    """Copies and pages are where the rewritten links look for them."""
    site.prepare(tmp_path)
    for path in tmp_path.rglob("*.md"):
        prose = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        links = [link for link in re.findall(r"\]\(([^)\s#]+)[)#]", prose) if "://" not in link]
        assert [link for link in links if not (path.parent / link).exists()] == [], path


def typed_lines(document: Path) -> Iterator[tuple[str, str]]:
    """Yield place and text of the typed lines in a document's console blocks; its output is not typed."""
    for block in blocks_of(document):
        goes_on = False
        for offset, line in enumerate(block.lines if block.language == "console" else (), start=1):
            if goes_on or line.startswith("$ "):
                yield f"{name_of(document)}:{block.line + offset}", line
                goes_on = line.endswith("\\")


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_commands_are_no_wider_than_a_page(document: Path):
    """A command of more than 100 characters continues on another line."""
    assert [place for place, line in typed_lines(document) if len(line) > 100] == []
