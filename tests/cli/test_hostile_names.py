"""Names that terminals would obey: OSC, CSI, C1, and marks that reorder text. None is printed as it is, anywhere."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cli_cases import ROOT

from gridsched.errors import visible
from gridsched.files.json_files import json_line, json_text

#: A title, a color, C1's CSI, a bell and two marks that reverse what follows.
HOSTILE = "u\x1b]0;TITLE\x1b\\\x1b[31mred\x9b2J\x07\u202eabc\u2066d"
#: The same for XML, which has no C0 controls.
OF_XML = "h\x9b2J\u202eabc\u2066\u200fd"
JOBS = "id,submit_time_s,run_time_s,nodes,requested_time_s,user\n1,0,10,1,20,{name}\n2,1,10,1,20,bob\n"
HOST = '<host id="{name}" speed="1f"><prop id="wattage_per_state" value="1:2:2"/></host>'
PLATFORM = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<platform version="4.1"><zone id="z" routing="Full">{}</zone></platform>'
)


def assert_harmless(*texts: str) -> None:
    """Every character is printed as itself, or ends a line."""
    for text in texts:
        assert [each for each in text if not each.isprintable() and each != "\n"] == []


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Return a folder with a log, a platform, a bag and a study whose names are hostile."""
    (tmp_path / "esc.jobs.csv").write_text(JOBS.format(name=HOSTILE), encoding="utf-8")
    hosts = HOST.format(name=OF_XML) + HOST.format(name="b")
    (tmp_path / "p.xml").write_text(PLATFORM.format(hosts), encoding="utf-8")
    (tmp_path / "b.csv").write_text("id,flops\n1,5\n2,5\n")
    return tmp_path


def commands(folder: Path) -> list[list[str]]:
    """Return commands that print names of logs and platforms in tables, values, notes and JSON."""
    log = ["--workload", str(folder / "esc.jobs.csv"), "--nodes", "2", "--driver", "reference"]
    bag = ["--platform", str(folder / "p.xml"), "--workload", str(folder / "b.csv"), "--driver", "reference"]
    return [
        ["run", *log, "--scheduler", "fcfs", "--group-by", "user"],
        ["run", *log, "--scheduler", "fcfs", "--group-by", "user", "--json"],
        ["compare", *log, "--schedulers", "fcfs,easy_backfilling", "--group-by", "user"],
        ["workload", "describe", str(folder / "esc.jobs.csv")],
        ["workload", "describe", str(folder / "esc.jobs.csv"), "--json"],
        ["validate", *bag[:4], "--schedulers", "mct", "--master", HOSTILE],
        ["platform", "check", str(folder / "p.xml")],
        ["run", *bag, "--scheduler", "mct", "--power", f"{OF_XML}=none"],
        ["run", *bag, "--scheduler", "mct", "--master", HOSTILE],
        ["run", "--workload", f"{folder}/{HOSTILE}.csv"],
        ["--traceback", "run", "--workload", f"{folder}/{HOSTILE}.csv"],
        ["schedulers", HOSTILE],
    ]


@pytest.mark.parametrize("k", range(12))
def test_no_command_prints_what_a_terminal_obeys(gridsched, files: Path, k: int):
    outcome = gridsched(*commands(files)[k])
    assert_harmless(outcome.out, outcome.err)
    assert outcome.out + outcome.err


def test_names_remain_apart_and_are_read(gridsched, files: Path):
    """In a table the escapes are written out, in JSON they are those of JSON."""
    table, whole = (gridsched(*commands(files)[k]).out for k in (0, 1))
    assert r"u\x1b]0;TITLE\x1b\\x1b[31mred\x9b2J\x07\u202eabc\u2066d" in table
    assert json.dumps(HOSTILE) in json.dumps(json.loads(whole))


@pytest.mark.parametrize("words", [[], ["--progress", "json"]])
def test_a_campaign_prints_nothing_that_a_terminal_obeys(gridsched, files: Path, words: list[str]):
    """Its title, its axes, its failures and what it reads."""
    (files / "s.toml").write_text(
        f'name = "s"\ntitle = {json.dumps(HOSTILE)}\nsource = {json.dumps(HOSTILE)}\ndriver = "reference"\n'
        f'schedulers = ["mct"]\nworkload = "b.csv"\nplatform = "p.xml"\nmaster = [{json.dumps(HOSTILE)}, "b"]\n',
        encoding="utf-8",
    )
    store = str(files / "store")
    for each in (
        ["study", "check", str(files / "s.toml")],
        ["study", "run", str(files / "s.toml"), "--store", store, "--workers", "1", *words],
        ["study", "status", store],
    ):
        outcome = gridsched(*each)
        assert_harmless(outcome.out, outcome.err)


def test_brackets_and_colons_of_names_are_no_markup(gridsched, files: Path):
    """A file called so is named as it is called."""
    path = files / "[bold]:smile:[].xml"
    path.write_text((files / "p.xml").read_text(encoding="utf-8"), encoding="utf-8")
    outcome = gridsched("platform", "check", path)
    assert "[bold]:smile:[]" in outcome.out


def test_a_terminal_gets_no_more_than_colors_of_ours(files: Path):
    """On a terminal tables have bold cells; whatever else begins an escape is a name's and is written out."""
    leader, follower = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "200"}
    command = [sys.executable, "-m", "gridsched", *commands(files)[2]]
    done = subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower, env=environment)
    os.close(follower)
    pieces = []
    while True:
        try:
            pieces.append(os.read(leader, 1 << 16))
        except OSError:
            break
    assert done.wait() == 0
    os.close(leader)
    text = b"".join(pieces).decode().replace("\r\n", "\n")
    assert r"\x1b]0;TITLE" in text
    assert_harmless(re.sub(r"\x1b\[[0-9;]*m|\x1b\[\?25[lh]|\x1b\[[0-9]*[AK]|\r", "", text))


def test_every_character_that_is_hidden_has_an_escape():
    """C0 but for line breaks, DEL, C1, marks of direction, what is not assigned; letters of all scripts remain."""
    for code in (*range(9), *range(14, 28), 127, *range(128, 133), *range(134, 160), 0x61C, 0x200F, 0xE0001):
        assert visible(chr(code)) in (rf"\x{code:02x}", rf"\u{code:04x}", rf"\U{code:08x}")
    assert visible("é日本العربية ± µ") == "é日本العربية ± µ"
    assert visible("a\nb\tc\x85d") == "a\nb c d"
    assert visible("a\nb", breaks=False) == "a b"
    text = "".join(map(chr, (*range(0x300), 0x202E, 0xE0001, 0x1F600)))
    assert json.loads(json_text([text])) == [text] == json.loads(json_line([text]))
    assert_harmless(json_text([text]), json_line([text]))
