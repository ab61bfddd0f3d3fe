"""A study's report as one HTML page that needs nothing else."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from gridsched.analysis.texts import TextTable

#: Longer tables are cut on the page; the CSV beside it holds all rows.
MAX_ROWS = 200
#: A number, perhaps with its interval, the count behind it, or a percent sign; not "29 tasks".
_NUMBER = re.compile(r"[-+]?[\d.,]+(e[-+]?\d+)?( ± \S+)?( %)?( \(\d+\))?$")

_STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0; color: #1c2733; background: #fff;
       font: 16px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
header { background: #1b3a5c; color: #fff; padding: 1.4rem 0; }
header h1 { margin: 0 0 .2rem; font-size: 1.6rem; line-height: 1.25; }
header p { margin: 0; color: #d6e2ee; }
.inner { max-width: 86rem; margin: 0 auto; padding: 0 1.2rem; }
nav { border-bottom: 1px solid #d5dde5; background: #f4f7fa; }
nav a { display: inline-block; padding: .55rem 1rem .55rem 0; color: #1b3a5c; }
main { padding-bottom: 3rem; }
h2 { margin: 2.2rem 0 .6rem; font-size: 1.3rem; border-bottom: 2px solid #d5dde5; }
h3 { margin: 1.6rem 0 .3rem; font-size: 1.05rem; }
p { max-width: 50rem; margin: .4rem 0; }
.facts { display: flex; flex-wrap: wrap; gap: .7rem; margin: 1.2rem 0; padding: 0; }
.facts div { border: 1px solid #d5dde5; border-radius: .4rem; padding: .5rem .9rem; }
.facts dt { font-size: .8rem; color: #51606e; }
.facts dd { margin: 0; font-size: 1.25rem; font-weight: 600; }
.facts .bad { border-color: #a5371b; background: #fdf1ed; }
.scroll { overflow-x: auto; margin: .5rem 0 1rem; }
table { border-collapse: collapse; font-size: .86rem; font-variant-numeric: tabular-nums; }
th, td { padding: .28rem .7rem; text-align: right; border-bottom: 1px solid #e3e8ed;
         white-space: nowrap; }
th { background: #eef2f6; border-bottom: 2px solid #c3ced8; }
tbody tr:nth-child(even) { background: #f8fafb; }
.label { text-align: left; }
.wide { white-space: normal; min-width: 16rem; max-width: 44rem; overflow-wrap: anywhere; }
.note { color: #51606e; font-size: .9rem; }
.warn { border-left: 4px solid #a5371b; background: #fdf1ed; padding: .5rem .9rem; }
figure { margin: 1rem 0 1.8rem; }
figure img { display: block; width: 100%; min-width: 44rem; height: auto; }
figure.narrow img { max-width: 44rem; min-width: 24rem; }
figcaption { max-width: 50rem; font-size: .92rem; color: #37444f; }
details > summary { cursor: pointer; margin: .5rem 0; font-weight: 600; color: #1b3a5c; }
.verdict { font-weight: 600; white-space: nowrap; }
.verdict::before { display: inline-block; width: 1.2em; }
.reproduced::before { content: "\\2713"; }
.direction::before { content: "~"; }
.missed::before { content: "\\2717"; }
.missed { color: #96301a; }
@media (max-width: 40rem) {
  body { font-size: 15px; } .inner { padding: 0 .8rem; } header h1 { font-size: 1.25rem; }
  th, td { padding: .25rem .5rem; } table { font-size: .8rem; } .wide { min-width: 11rem; }
  .cards thead { display: none; } .cards table, .cards tbody { display: block; }
  .cards tr { display: block; padding: .4rem 0; border-bottom: 1px solid #c3ced8; }
  .cards td { display: block; border: 0; padding: .05rem .5rem; white-space: normal; }
  .cards td[data-label]::before { content: attr(data-label) ": "; color: #51606e; }
  .cards td:first-child { font-weight: 600; }
}
@media print { nav { display: none; } .scroll { overflow: visible; } }
"""


@dataclass(frozen=True)
class Part:
    """A part of the page: its anchor, heading, and HTML."""

    anchor: str
    heading: str
    html: str


def page_html(title: str, subtitle: str, parts: Sequence[Part]) -> str:
    """Return the page.

    Parameters
    ----------
    title, subtitle : str
        Plain texts.
    parts : sequence of Part
        In order; each gets a link at the top.
    """
    links = " ".join(f'<a href="#{part.anchor}">{escape(part.heading)}</a>' for part in parts)
    body = "\n".join(
        f'<section id="{part.anchor}">\n<h2>{escape(part.heading)}</h2>\n{part.html}\n</section>'
        for part in parts
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<link rel="icon" href="data:,">
<style>{_STYLE}</style>
</head>
<body>
<header><div class="inner"><h1>{escape(title)}</h1><p>{escape(subtitle)}</p></div></header>
<nav><div class="inner">{links}</div></nav>
<main class="inner">
{body}
</main>
</body>
</html>
"""


def facts_html(facts: Iterable[tuple[str, str, bool]]) -> str:
    """Return figures in boxes; each is (what, value, whether it is bad news)."""
    boxes = "\n".join(
        f"<div{' class=bad' if bad else ''}><dt>{escape(what)}</dt><dd>{escape(value)}</dd></div>"
        for what, value, bad in facts
    ).replace("class=bad", 'class="bad"')
    return f'<dl class="facts">\n{boxes}\n</dl>'


def table_html(table: TextTable, *, heading: bool = True, csv: str = "") -> str:
    """Return a table; of a very long one, its first rows.

    Parameters
    ----------
    table : TextTable
    heading : bool
        Put its title above it.
    csv : str
        Name of the file that holds its numbers.
    """
    shown = table.rows[:MAX_ROWS]
    numbers = [_is_number_column(shown, k) for k in range(len(table.header))]
    head = "".join(_cell("th", text, numbers[k]) for k, text in enumerate(table.header))
    body = "\n".join(
        "<tr>" + "".join(_cell("td", text, numbers[k]) for k, text in enumerate(row)) + "</tr>"
        for row in shown
    )
    notes = [table.note] if table.note else []
    if len(table.rows) > MAX_ROWS:
        notes.append(f"The first {MAX_ROWS} of {len(table.rows):,} rows.")
    if csv:
        notes.append(f"All numbers: {csv}.")
    title = f"<h3>{escape(table.title)}</h3>\n" if heading else ""
    note = f'<p class="note">{escape(" ".join(notes))}</p>\n' if notes else ""
    return (
        f'{title}{note}<div class="scroll" tabindex="0"><table>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def _is_number_column(rows: Sequence[Sequence[str]], k: int) -> bool:
    texts = [row[k] for row in rows if k < len(row) and row[k] not in ("", "-")]
    return bool(texts) and all(map(_NUMBER.match, texts))


def _cell(tag: str, text: str, is_number: bool) -> str:
    kind = "" if is_number else ' class="label wide"' if len(text) > 40 else ' class="label"'
    return f"<{tag}{kind}>{escape(text)}</{tag}>"


def figure_html(
    image: bytes, media_type: str, caption: str, files: str, *, is_narrow: bool = False
) -> str:
    """Return a figure with its image inside.

    Parameters
    ----------
    image : bytes
        Content of the image file.
    media_type : str
        ``image/png`` or ``image/svg+xml``.
    caption : str
    files : str
        Where the figure's files are, in words.
    is_narrow : bool
        Whether it has a single column of panels.
    """
    data = base64.b64encode(image).decode("ascii")
    kind = ' class="narrow"' if is_narrow else ""
    return (
        f'<figure{kind}><div class="scroll" tabindex="0"><img alt="{escape(caption)}" '
        f'src="data:{media_type};base64,{data}"></div>\n'
        f'<figcaption>{escape(caption)} <span class="note">{escape(files)}</span></figcaption>'
        "</figure>"
    )


def details_html(summary: str, html: str) -> str:
    """Return HTML that is folded away until it is asked for."""
    return f"<details><summary>{escape(summary)}</summary>\n{html}\n</details>"
