"""Write the tables of the documents that follow from the code, and the figure of all claims.

Run ``python docs/generated_tables.py`` after a change of what they show, or after a study's claims
were published anew; a test compares them. Such a table, or text, stands between
``<!-- table: NAME -->`` and ``<!-- end of table -->``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from pathlib import Path

import published_claims

from gridsched.metrics import METRICS
from gridsched.metrics.table import FORMULA

DOCS = Path(__file__).resolve().parent
_TABLE = re.compile(r"(<!-- table: (\w+) -->\n)(.*?)(<!-- end of table -->)", re.DOTALL)


def markdown(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table in Markdown."""
    names = list(header)
    lines = [names, ["---"] * len(names), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines).replace("  ", " ")


def metrics_table() -> str:
    """Return what each metric means and when it exists."""
    kinds = {"run": "", "plan": "", "row": "`compare`, reports of studies", "comparison": "`compare`"}
    rows = [
        [
            f"`{metric.id}`",
            metric.unit,
            metric.sentence,
            ", ".join(filter(None, [kinds[metric.of], metric.condition.words])),
        ]
        for metric in METRICS.values()
        if metric.condition is not FORMULA
    ]
    return markdown(["key", "unit", "meaning", "only in or with"], rows)


def metric_names_table() -> str:
    """Return how metrics are called, and which direction is better."""
    rows = [
        [metric.name.lower(), f"`{metric.id}`", metric.unit, metric.better or ""]
        for metric in METRICS.values()
        if metric.is_number and metric.condition is not FORMULA
    ]
    return markdown(["word", "in gridsched", "unit", "better"], rows)


def claims_table() -> str:
    """Return for each study how many claims of each kind are reproduced."""
    rows = published_claims.counts_rows()
    return markdown(published_claims.COUNTS_HEADER, rows)


#: What README says of each paper, and where its studies begin.
PAPERS = {
    "000": ("serial tasks with utility, a day's energy", "docs/studies/utility.md"),
    "001": ("the same for parallel tasks on clusters", "docs/studies/parallel.md"),
    "002": ("uncertain run times, deadlines, one budget", "docs/studies/robust.md"),
    "003": ("profit of bags by linear programmes", "docs/studies/profit.md"),
    "004": ("LECSA, bags of tasks on grids", "docs/studies/lecsa.md"),
}


def papers_table() -> str:
    """Return for each paper how many claims of each kind are reproduced."""
    return markdown(published_claims.PAPERS_HEADER, published_claims.paper_rows(PAPERS))


def schedulers_table() -> str:
    """Return the families of schedulers: a page each, and whom it describes."""
    rows = []
    for page in sorted(DOCS.glob("schedulers/*.md")):
        text = page.read_text(encoding="utf-8")
        title = text.partition("\n")[0].removeprefix("# ")
        ids = re.findall(r"^## (`\w+`)$", text, flags=re.MULTILINE)
        rows.append([f"[{title}](schedulers/{page.name})", ", ".join(ids)])
    return markdown(["family", "schedulers"], rows)


def systems_table(study: str) -> str:
    """Return the numbers of a study of paper 001 in both systems."""
    header = ["claim", "paper", "`printed`", "`oversubscribed`"]
    return markdown(header, published_claims.systems_rows(study))


#: The modules that users import; whatever else the package holds may move.
PUBLIC_MODULES = (
    "gridsched",
    "gridsched.testing",
    "gridsched.learning",
    "gridsched.claims",
    "gridsched.plugins",
    "gridsched.linear",
    "gridsched.formulas",
    "gridsched.errors",
    "gridsched.systems.profit",
    "gridsched.systems.utility",
)


def public_names(module: str) -> list[str]:
    """Return the names that a public module offers."""
    room = import_module(module)
    return sorted(getattr(room, "__all__", None) or (name for name, each in vars(room).items() if is_own(each, module)))


def is_own(each: object, module: str) -> bool:
    """Whether an error is defined in a module."""
    return isinstance(each, type) and each.__module__ == module


def public_table() -> str:
    """Return the public modules, the first sentence of each, and its names."""
    rows = []
    for module in PUBLIC_MODULES:
        sentence = (import_module(module).__doc__ or "").partition("\n")[0].rstrip(".:")
        names = ", ".join(f"`{name}`" for name in public_names(module))
        rows.append([f"`{module}`", f"{sentence}: {names}"])
    return markdown(["module", "what it gives"], rows)


TABLES: dict[str, Callable[[], str]] = {
    "metrics": metrics_table,
    "metric_names": metric_names_table,
    "claims": claims_table,
    "papers": papers_table,
    "schedulers": schedulers_table,
    "public": public_table,
    "systems_of_parallel": partial(systems_table, "parallel"),
    **{
        f"claims_of_{paper or 'none'}": partial(published_claims.counts_list, paper)
        for paper in ("000", "001", "002", "003", "004", "")
    },
}


def block(name: str) -> str:
    """Return what stands in a block: a table, or for ``claims_STUDY`` the counts of a study."""
    if name in TABLES:
        return TABLES[name]()
    return published_claims.counts_text(name.removeprefix("claims_"))


def up_to_date(text: str) -> str:
    """Return a document with its generated tables as they are now."""
    return _TABLE.sub(lambda found: found[1] + "\n" + block(found[2]) + "\n" + found[4], text)


def main() -> None:
    """Rewrite the documents, and draw the figure."""
    published_claims.draw(published_claims.FIGURE)
    for document in (DOCS.parent / "README.md", *DOCS.rglob("*.md")):
        text = document.read_text(encoding="utf-8")
        document.write_text(up_to_date(text), encoding="utf-8")


if __name__ == "__main__":
    main()
