"""Files of enormous size or malicious make: read in linear time, or refused in one line."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from made_files import xlsx

from gridsched.errors import InputError
from gridsched.platform_io import table_files, xml_entries
from gridsched.platform_io.check import check_platform_file
from gridsched.platform_io.from_table import select_rows
from gridsched.platform_io.recipe import PlatformRecipe
from gridsched.platform_io.tables import read_machine_table
from gridsched.platform_io.xml_document import _with_comments, read_document
from gridsched.platform_io.xml_edit import current_platform_xml
from gridsched.platform_io.xml_reader import read_platform

HEAD = (
    '<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">'
    '<platform version="4.1"><zone id="z" routing="Full">'
)
TAIL = "</zone></platform>"
CLUSTER = '<cluster id="c" prefix="h" suffix="" radical="{}" speed="{}" bw="1Bps" lat="0s"/>'


def refusal(read, path: Path) -> str:
    """Return the one line by which a file is refused."""
    with pytest.raises(InputError) as caught:
        read(path)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    return message


@pytest.fixture
def platform(tmp_path: Path):
    """Write a platform file around some elements."""

    def write(content: str) -> Path:
        path = tmp_path / "p.xml"
        path.write_text(HEAD + content + TAIL)
        return path

    return write


def test_comments_are_passed_once(platform):
    """However many are opened, and never closed."""
    assert _with_comments(b"a<!-- b --><!-- <!-- -->c<!-- d", lambda comment: b"") == b"ac<!-- d"
    path = platform('<host id="&foo;" speed="1f"/>' + "<!-- " * 200_000)
    assert "entity 'foo'" in refusal(read_document, path)


@pytest.mark.parametrize("content", ["<!--{}-->", "<prop id='a' value='{}'/>"])
def test_long_comments_and_attributes_are_passed_once(platform, content):
    """Not again with every portion that is read: 16 times the text takes no 100 times as long."""
    times_s = []
    for size in (1 << 20, 1 << 24):
        path = platform(content.format("x" * size))
        begin = time.process_time()
        read_document(path)
        times_s.append(time.process_time() - begin)
    assert times_s[1] < 100 * max(times_s[0], 1e-3)


@pytest.mark.parametrize(
    ("radical", "speed", "part"),
    [("0-1000000", "1f", "300,000 hosts"), ("0-19999", ",".join(["1f"] * 5000), "P-states")],
)
@pytest.mark.parametrize("read", [read_platform, check_platform_file])
def test_more_hosts_or_speeds_than_any_platform_has(platform, read, radical, speed, part: str):
    """The line names the limit, before anything is spelled out; SimGrid is never asked."""
    message = refusal(read, platform(CLUSTER.format(radical, speed)))
    assert part in message
    assert ", line 1" in message


@pytest.mark.parametrize(
    "topology",
    [
        "TORUS' topo_parameters='100000,100000",
        "FAT_TREE' topo_parameters='1;4;1000000;1000000",
        "DRAGONFLY' topo_parameters='1,3;1,2;1,1;100000000",
    ],
)
def test_more_links_than_any_cluster_has(platform, topology: str):
    """A few characters would have SimGrid make thousands of millions of them."""
    cluster = CLUSTER.format("0-3", "1f").replace("/>", f" topology='{topology}'/>")
    assert "links of a cluster" in refusal(check_platform_file, platform(cluster))


@pytest.mark.parametrize(
    "element",
    [
        "<host id='{}' speed='1f'/>",
        "<link id='{}' bandwidth='1Bps'/>",
        "<route src='{}' dst='a'/>",
        "<cluster id='c' prefix='{}' suffix='' radical='0-9' speed='1f' bw='1Bps' lat='0s'/>",
    ],
)
def test_names_longer_than_any(platform, element: str):
    """Line, attribute and limit are named; the name is not repeated."""
    message = refusal(check_platform_file, platform(element.format("h" * 10_000)))
    assert "at most 1,000" in message
    assert len(message) < 300


def test_options_that_no_config_closes(platform):
    """However many are opened; one pass."""
    assert current_platform_xml(platform("<!-- " + "<config " * 200_000 + "-->")) is None
    text = "<config>" + "<prop " * 200_000 + "</config>"
    assert current_platform_xml(platform(f"<!-- {text} -->")) is None


def test_the_limit_of_speeds_counts_all_hosts(platform, monkeypatch: pytest.MonkeyPatch):
    """Three hosts of two speeds each are within a limit of six, four are not."""
    monkeypatch.setattr(xml_entries, "MAX_PSTATES", 6)
    assert read_platform(platform(CLUSTER.format("0-2", "2f,1f"))).hosts[2].pstates[1].speed == 1.0
    assert "more than 6" in refusal(read_platform, platform(CLUSTER.format("0-3", "2f,1f")))


def test_longer_tables_than_any_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Text and workbook alike."""
    monkeypatch.setattr(table_files, "MAX_ROWS", 3)
    rows = ["Rank,Computer,Power,Rmax [TFlop/s]", *(f"{k},A,5,3" for k in range(1, 5))]
    text, book = tmp_path / "t.csv", tmp_path / "t.xlsx"
    text.write_text("\n".join(rows))
    book.write_bytes(xlsx([[row.split(",") for row in rows]]))
    assert "more than 3 rows" in refusal(read_machine_table, text)
    assert "at most 3 rows" in refusal(read_machine_table, book)


def test_a_workbook_that_breaks_its_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Memory of the reader is limited; it is another process that ends."""
    data = xlsx([[["Rank"]]])
    path = tmp_path / "t.xlsx"
    path.write_bytes(data)
    monkeypatch.setattr(table_files, "MEMORY", 1 << 24)
    assert "broke off" in refusal(read_machine_table, path)


def test_a_workbook_of_enormous_extent(tmp_path: Path):
    """One cell in the last corner of a sheet: 17 thousand million cells."""
    import io
    import zipfile

    source = zipfile.ZipFile(io.BytesIO(xlsx([[["Rank"], ["1"]]])))
    path = tmp_path / "wide.xlsx"
    with zipfile.ZipFile(path, "w") as archive:
        for name in source.namelist():
            text = source.read(name).decode()
            if "sheet1" in name:
                text = re.sub(r'r="A2"', 'r="XFD1048576"', text).replace('r="2"', 'r="1048576"')
            archive.writestr(name, text)
    assert "not readable as a spreadsheet" in refusal(read_machine_table, path)


def test_footnotes_end_a_list(tmp_path: Path):
    """Lines below the last machine that hold no number are reported, not refused."""
    path = tmp_path / "list.csv"
    path.write_text(
        "Rank,Computer,Power,Rmax [TFlop/s]\n1,A,5,3\n2,B,6,2\n\n* Power, as measured, by night\nSource: the owners\n"
    )
    table = read_machine_table(path)
    assert table.frame["computer"].tolist() == ["A", "B"]
    assert any("2 lines below the last machine" in note for note in table.notes)
    path.write_text("Rank,Computer,Power,Rmax [TFlop/s]\n1,A,5,3\nNote,B,x,y\n2,B,6,2\n")
    assert "line 3" in refusal(read_machine_table, path)


def test_lists_parted_by_colons(tmp_path: Path):
    """They are lists like others."""
    path = tmp_path / "list.txt"
    path.write_text("Rank:Computer:Power (kW):Rmax [TFlop/s]\n1:A:5:3\n2:B:6:2\n")
    assert read_machine_table(path).frame["power_w"].tolist() == [5e3, 6e3]


XML = """<?xml version="1.0" encoding="UTF-8"?>
<top500:list xmlns:top500="http://www.top500.org/xml/top500/1.0" date="2019/11/18">
<top500:site><top500:rank>1</top500:rank><top500:system-name>Big</top500:system-name>
<top500:computer>Blue, &amp; green</top500:computer><top500:r-max>148600000.0</top500:r-max>
<top500:power>10096.0</top500:power><top500:r-peak>200794880.0</top500:r-peak>
<top500:installation-site><top500:installation-site-name>Lab</top500:installation-site-name>
</top500:installation-site><top500:year>2018</top500:year>
<top500:number-of-processors>2414592</top500:number-of-processors></top500:site>
<top500:site><top500:rank>2</top500:rank><top500:r-max>94640000</top500:r-max></top500:site>
</top500:list>"""


def test_xml_of_a_top500_list(tmp_path: Path):
    """Rmax is in GFlop/s there, power in kW; entities are refused."""
    path = tmp_path / "TOP500_201911_all.xml"
    path.write_text(XML)
    frame = read_machine_table(path).frame
    assert frame["rmax_flops"].tolist() == [148.6e15, 94.64e15]
    assert frame["power_w"].tolist()[0] == 10_096e3
    assert frame.loc[0, ["name", "computer", "site"]].tolist() == ["Big", "Blue, & green", "Lab"]
    assert frame["cores"].tolist()[0] == 2_414_592
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaa">]>'
    path.write_text(XML.replace("<top500:list", f"{bomb}<top500:list", 1))
    assert "entities" in refusal(read_machine_table, path)
    path.write_text(XML[:400])
    assert "not well-formed" in refusal(read_machine_table, path)


def test_a_name_pattern_that_would_look_for_ever(tmp_path: Path):
    """Each text is passed once, whatever the pattern; what cannot be looked for so is refused."""
    path = tmp_path / "list.csv"
    path.write_text(f"Rank,Computer,Power,Rmax [TFlop/s]\n1,{'a' * 100_000}b,5,3\n2,aa,6,2\n")
    recipe = PlatformRecipe(hosts=1, name_pattern="(a+)+$")
    assert select_rows(read_machine_table(path), recipe)["computer"].tolist() == ["aa"]
    with pytest.raises(InputError, match="Name pattern"):
        PlatformRecipe(name_pattern=r"(a)\1")


@pytest.mark.filterwarnings("error")
def test_a_name_pattern_with_groups(tmp_path: Path):
    """It is a pattern like others; nothing is warned of."""
    path = tmp_path / "list.csv"
    path.write_text("Rank,Computer,Power,Rmax [TFlop/s]\n1,Alpha,5,3\n2,Beta,6,2\n")
    recipe = PlatformRecipe(hosts=1, name_pattern="(al|x)(pha)")
    assert select_rows(read_machine_table(path), recipe)["computer"].tolist() == ["Alpha"]
