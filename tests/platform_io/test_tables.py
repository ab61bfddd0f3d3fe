from __future__ import annotations

import ast

import numpy as np
import pandas as pd
import pytest
from header_rows import HEADER_ROWS
from made_files import xlsx

from gridsched.errors import InputError
from gridsched.platform_io.from_table import platform_from_table
from gridsched.platform_io.recipe import PlatformRecipe, parse_pstates
from gridsched.platform_io.table_headers import recognise_headers
from gridsched.platform_io.tables import CANONICAL, read_machine_table

GREEN = (
    "Green500_Rank,Computer,Mflops/Watt,Power,Top500_Rank,Rmax,Year\n"
    '1,"Big, blue",2000,50,7,100000,2011\n'
    "2,Grün,1000,100,3,100000,2010\n"
)


@pytest.mark.parametrize(("headers", "expected"), HEADER_ROWS)
def test_headers_are_recognised_by_meaning(headers, expected):
    """Positions and units of all columns, and nothing else."""
    found = {name: (c.index, c.factor) for name, c in recognise_headers(headers).items()}
    assert found == expected


def test_all_real_header_variants(shared_data):
    """All 47 variants give a rank, a machine, and power and efficiency where they have them."""
    lines = shared_data("green500/header_variants.txt").read_text().splitlines()
    rows = [ast.literal_eval(line) for line in lines if line.strip()]
    assert len(rows) == 47
    for headers in rows:
        found = recognise_headers(headers)
        assert {"rank", "computer", "site"} <= set(found)
        has_power = any("ower" in h and "ource" not in h and "Eff" not in h for h in headers)
        assert ("power_w" in found) == has_power
        has_rmax = any(h.lower().startswith("rmax") for h in headers)
        assert ("rmax_flops" in found) == has_rmax
        has_efficiency = any("wat" in h.lower() or h == "MFW" for h in headers)
        assert ("efficiency_flop_per_j" in found) == has_efficiency
        assert ("cores" in found) == any(h in ("Cores", "Total Cores", "Processors") for h in headers)


def test_units_and_columns(write):
    """Mflops/Watt, kW and, in 2011, GFlop/s become SI values; the year's source is noted."""
    table = read_machine_table(write("t.csv", GREEN))
    assert tuple(table.frame.columns) == (*CANONICAL, "taken")
    first = table.frame.iloc[0]
    assert first["computer"] == "Big, blue"
    assert (first["rank"], first["top500_rank"], first["year"]) == (1, 7, 2011)
    assert (first["rmax_flops"], first["power_w"]) == (1e14, 5e4)
    assert first["efficiency_flop_per_j"] == 2e9
    assert "GFlop/s, as in lists of 2011 (newest year in the table)" in table.notes[0]


VARIANTS = {
    "bom": ("\ufeff" + GREEN).encode(),
    "cr_only": GREEN.replace("\n", "\r").encode(),
    "crlf": GREEN.replace("\n", "\r\n").encode(),
    "latin1": GREEN.encode("latin-1"),
    "utf16": GREEN.encode("utf-16"),
    "preamble": ("The Green500\n\nNovember 2011, see site\n" + GREEN).encode(),
    "empty_rows": GREEN.replace("\n2,", "\n,,,,,,\n\n2,").encode(),
    "tabs": GREEN.replace(",", "\t").replace("Big\t", "Big,").encode(),
    "semicolons": GREEN.replace(",", ";").replace("Big;", "Big,").encode(),
    "comment": GREEN.replace("\n2,", "\n# half time\n2,").encode(),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_all_spellings_of_a_file_give_one_table(write, name):
    """Byte order mark, line ends, encodings, preambles and delimiters make no difference."""
    expected = read_machine_table(write("a.csv", GREEN)).frame
    pd.testing.assert_frame_equal(read_machine_table(write("b", VARIANTS[name])).frame, expected)


def test_spreadsheets_by_content(write):
    """An XLSX file is read whatever its name, from the sheet that has the header."""
    rows = [line.split(",") for line in GREEN.replace('"Big, blue"', "Big").splitlines()]
    data = xlsx([[["nothing"], ["here"]], [["The list"], *rows]])
    table = read_machine_table(write("misnamed.csv", data))
    assert table.frame["power_w"].tolist() == [5e4, 1e5]
    assert table.frame["computer"].tolist() == ["Big", "Grün"]
    with pytest.raises(InputError, match="header"):
        read_machine_table(write("empty.xlsx", xlsx([[["nothing"]]])))
    bad = xlsx([[[*rows[0]], ["1", "A", "fast", "1"]]])
    with pytest.raises(InputError, match=r"line 2.*'Mflops/Watt'.*'fast'"):
        read_machine_table(write("bad.xlsx", bad))


def test_speed_power_and_efficiency_complete_each_other(write):
    """Two of three give the third; what is short of two stays and is counted."""
    text = (
        "Green500_Rank,Rmax [TFlop/s],Power (kW),Mflops/Watt\n"
        "1,,50,2000\n2,100,50,\n3,100,,2000\n4,100,,\n5,100,50,1000\n6,100,0,2000\n"
    )
    table = read_machine_table(write("file.txt", text))
    frame = table.frame
    assert np.allclose(frame["rmax_flops"], 1e14)
    assert frame["efficiency_flop_per_j"].tolist()[:3] == [2e9, 2e9, 2e9]
    assert np.isnan(frame["efficiency_flop_per_j"][3])
    assert frame["efficiency_flop_per_j"][4] == 1e9
    assert frame["power_w"][2] == frame["power_w"][5] == 5e4
    told = "\n".join(table.notes)
    for part in (
        "1 row has no Rmax: efficiency x power",
        "1 row has no efficiency: Rmax / power",
        "1 row has power 0",
        "1 row has an efficiency that is not Rmax / power",
        "1 of 6 rows give no power or no speed",
    ):
        assert part in told


def test_an_efficiency_a_factor_off_is_not_believed(write):
    """Camphor 3's row: 1,026.64 kW are listed, its efficiency would make 1.03 GW of them."""
    text = (
        "Rank,Name,Computer,Rmax [TFlop/s],Power (kW),Energy Efficiency [GFlops/Watts]\n"
        "1,fine,a,100,50,2\n"
        "2,Camphor 3,DELL C6620,3974,1026.64,0.003870880\n"
        "3,high,b,100,50,4.02\n"
        "4,just,c,100,50,4\n"
        "5,,warned,100,50,2.3\n"
        "6,kept,d,100,50,2.1\n"
    )
    table = read_machine_table(write("file.txt", text))
    frame = table.frame
    assert frame["power_w"].tolist() == pytest.approx([5e4, 1026640, 5e4, 5e4, 5e4, 5e4])
    efficiency = [2e9, 3974e12 / 1026640, 2e9, 4e9, 2.3e9, 2.1e9]
    assert frame["efficiency_flop_per_j"].tolist() == pytest.approx(efficiency, rel=1e-12)
    assert frame["taken"].tolist() == ["", "power", "power", "efficiency", "efficiency", "efficiency"]
    for trust in ("power", "efficiency"):
        settled = read_machine_table(write("file.txt", text), trust=trust).frame["taken"].tolist()
        assert settled == ["", *[trust] * 5]
    wrong, kept = table.notes
    assert "2 rows have an efficiency more than a factor of 2 off Rmax / power" in wrong
    assert "taken for rank 2 ('Camphor 3', 0.001 times), rank 3 ('high', 2.01 times)." in wrong
    assert "3 rows have an efficiency that is not Rmax / power (more than 1% apart" in kept
    assert "over 10%: rank 4 ('just', 2 times), rank 5 ('warned', 1.15 times))" in kept
    hosts = platform_from_table(table, PlatformRecipe()).hosts
    assert hosts[1].pstates[0].busy_w == pytest.approx(1026640)


def test_many_rows_that_disagree_are_named_in_part(write):
    """Five by name, the others by their number."""
    rows = "".join(f"{k},m{k},100,50,9\n" for k in range(1, 9))
    table = read_machine_table(write("file.txt", f"Rank,Name,Rmax [TFlop/s],Power (kW),GFlops/W\n{rows}"))
    assert "rank 5 ('m5', 4.5 times) and 3 more." in table.notes[0]
    assert (table.frame["efficiency_flop_per_j"] == 2e9).all()


def test_a_real_row_that_is_off(shared_data):
    """In November 2016 rank 344 lists 2,100 kW, but 0.67 GFlop/J and 0.5 PFlop/s make 750 kW."""
    table = read_machine_table(shared_data("green500/green500_top_201611.csv"))
    frame = table.frame.set_index("rank")
    assert frame.loc[344, "efficiency_flop_per_j"] == pytest.approx(frame.loc[344, "rmax_flops"] / 2.1e6)
    assert any("taken for rank 344 (" in note for note in table.notes)


@pytest.mark.parametrize(
    ("name", "year_column", "given", "expected"),
    [
        ("x.csv", "2016", None, 1e9),
        ("x.csv", "2017", None, 1e12),
        ("x.csv", "2016", 2017, 1e12),
        ("list_201611.csv", "", None, 1e9),
        ("list_2017-11.csv", "", None, 1e12),
        ("list.csv", "", 2012, 1e9),
    ],
)
def test_unit_of_rmax_by_year(write, name, year_column, given, expected):
    """GFlop/s through 2016, TFlop/s from 2017: --year, the Year column, or the file's name."""
    text = f"Rank,Rmax,Power,Year\n1,5,3,{year_column}\n"
    frame = read_machine_table(write(name, text), year=given).frame
    assert frame["rmax_flops"][0] == 5 * expected


def test_a_wrong_year_is_noticed(write):
    """Where efficiency x power contradicts the unit by a thousand, the year is asked for."""
    text = "Green500_Rank,Rmax,Power,Mflops/Watt,Year\n1,100,50,2000,2015\n"
    with pytest.raises(InputError, match="--year"):
        read_machine_table(write("a.csv", text))
    assert read_machine_table(write("b.csv", text), year=2018).frame["rmax_flops"][0] == 1e14


def lists_of(dates: dict[str, list[float]], header: str = "year,rank,name,rmax,power", power_kw: float = 10) -> str:
    """Return a table of several lists: by the text of each date, Rmax of its ranks, all with the same power."""
    rows = [
        f"{date},{rank},m{k}-{rank},{rmax},{power_kw}"
        for k, (date, list_rmax) in enumerate(dates.items())
        for rank, rmax in enumerate(list_rmax, start=1)
    ]
    return "\n".join([header, *rows]) + "\n"


@pytest.mark.parametrize(
    ("year", "names", "first_flops", "left_out"),
    [(None, ["m2-1", "m2-2"], 900e9, 5), (2014, ["m1-1", "m1-2", "m1-3"], 800e9, 4), (2013, ["m0-1", "m0-2"], 7e11, 5)],
)
def test_of_several_lists_one_is_taken(write, year, names, first_flops, left_out):
    """The newest year's, or that of --year; the rows of the others are counted, not made into hosts."""
    text = lists_of({"2013": [700, 600], "2014": [800, 700, 600], "2015": [900, 800]})
    table = read_machine_table(write("t.csv", text), year=year)
    assert table.frame["name"].tolist() == names
    assert table.frame["rmax_flops"][0] == first_flops
    assert len(platform_from_table(table, PlatformRecipe()).hosts) == len(names)
    assert f"{left_out} rows" in table.notes[0]
    assert "--year" in table.notes[0]


def test_of_two_lists_a_year_the_later_month_is_taken(write):
    """June and November have the same ranks."""
    header = "year,month,rank,name,rmax,power"
    text = lists_of({"2014,11": [700, 600], "2015,6": [800, 700], "2015,11": [900, 800]}, header)
    path = write("t.csv", text)
    assert read_machine_table(path).frame["name"].tolist() == ["m2-1", "m2-2"]
    assert read_machine_table(path, year=2014).frame["name"].tolist() == ["m0-1", "m0-2"]


def test_a_year_that_no_list_has_is_refused(write):
    """The years that are there are named."""
    with pytest.raises(InputError, match=r"2012.*2013.*2014"):
        read_machine_table(write("t.csv", lists_of({"2013": [7, 6], "2014": [8, 7]})), year=2012)


@pytest.mark.parametrize(
    "rows",
    [
        "1,a,2000,50,2013\n2,b,1000,100,2015\n3,c,900,100,2014\n",
        "1,a,2000,50,2013\n1,b,2000,90,2015\n3,c,900,100,2014\n",
    ],
    ids=["years of installation", "a tie"],
)
def test_years_of_machines_in_one_list_are_no_lists(write, rows):
    """A list's Year states when a machine was set up; equal ranks with equal efficiency are a tie."""
    table = read_machine_table(write("t.csv", "Green500_Rank,Name,Mflops/Watt,Power,Year\n" + rows))
    assert len(table.frame) == 3


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        # GFlop/s under a year whose lists are in TFlop/s
        (
            lists_of({"2016": [90e6], "2017": [93e6, 33e6]}, power_kw=15371),
            ("line 3", "m1-1", "9.3e+19", "Rmax [GFlop/s]"),
        ),
        (lists_of({"2016": [90], "2017": [93e3, 33e3]}), ("line 3", "9.3e+03", "GFlops/W", "Rmax [GFlop/s]")),
        (
            "Rank,Name,Rmax [PFlop/s],Power (kW)\n1,a,9,7000\n2,b,93014,15371\n",
            ("line 3", "'b'", "9.3e+19", "Rmax [TFlop/s]"),
        ),
        ("Rank,Name,Power (kW),GFlops/Watt\n1,a,50,2.5\n2,b,50,2500\n", ("line 3", "2.5e+03", "MFlops/W")),
        ("Rank,Name,Rmax [TFlop/s],Power\n1,a,93014,15.371\n", ("line 2", "Power (MW)")),
        ("Rank,Name,Rmax (TFlop/s),Power (kW),GFlops/W\n1,a,93,15371,\n2,b,93014,15.371,\n", ("line 3", "Power (MW)")),
        ("Rank,Name,Power,GFlops/Watt\n1,a,15371000,6.051\n", ("line 2", "Power (W)")),
    ],
)
def test_impossible_machines_are_refused_by_row(write, text, parts):
    """Above 1e19 flop/s or 1,000 GFlops/W a unit is wrong: the row, the value and the unit to give are named."""
    with pytest.raises(InputError) as caught:
        read_machine_table(write("t.csv", text))
    for part in ("t.csv", *parts):
        assert part in str(caught.value)


def test_join_brings_cores_and_rmax(write):
    """Rows meet on the TOP500 rank; those without a partner stay."""
    green = "Green500_Rank,Computer,Mflops/Watt,Power,Top500_Rank\n1,A,2000,50,7\n2,B,1000,100,9\n"
    top = "Rank,Name,Total Cores,Rmax,Rpeak,Year\n3,x,1,1,1,2011\n7,seven,4096,99000,120000,2011\n"
    table = read_machine_table(write("g.csv", green), join=write("t.csv", top))
    a, b = table.frame.iloc[0], table.frame.iloc[1]
    assert (a["cores"], a["rmax_flops"], a["rpeak_flops"]) == (4096, 9.9e13, 1.2e14)
    assert (a["name"], a["computer"]) == ("seven", "A")
    assert np.isnan(b["cores"])
    assert b["rmax_flops"] == 1e14
    assert any("1 of 2 rows found their TOP500 rank" in note for note in table.notes)


OWN = (
    "name,speed,efficiency,idle_power_w,count,pstates,busy_power_w,off_power_w,cluster,cores\n"
    "a,1e3,2.0,4,3,1:1;0.5:0.25,,1,left,2\n"
    "b,500,,,,,250,,,\n"
)


def test_own_format(write):
    """Efficiency or busy power; everything else may be empty."""
    table = read_machine_table(write("file.txt", OWN))
    assert table.own_format
    frame = table.frame
    assert frame["rmax_flops"].tolist() == [1000, 500]
    assert frame["efficiency_flop_per_j"].tolist() == [2, 2]
    assert frame["power_w"].tolist() == [500, 250]
    assert frame["count"].tolist() == [3, 1]
    assert frame["cluster"].tolist() == ["left", ""]
    assert frame["rank"].tolist() == [1, 2]
    assert parse_pstates(frame["pstates"][0]) == ((1, 1), (0.5, 0.25))


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "empty"),
        ("\n\n", "empty"),
        (b"\x00\x01\x02binary", "binary"),
        (b"PK\x03\x04 truncated", "spreadsheet"),
        (b"\xd0\xcf\x11\xe0 truncated", "spreadsheet"),
        ("a,b,c\n1,2,3\n", "no header row"),
        ("Rank,Computer,Power,Rmax\n", "no rows"),
        ("Rank,Computer,Cores,Site\n1,A,5,s\n", "--join"),
        ("Rank,Computer,Power,Rmax [TFlop/s]\n1,A,-5,3\n", "line 2: column 'Power' is '-5'"),
        ("Rank,Computer,Power,Rmax [TFlop/s]\n1,A,x5,3\n", "line 2: column 'Power' is 'x5'"),
        ("Rank,Computer,Power,Rmax [TFlop/s]\n1,A,inf,3\n", "line 2"),
        ("Rank,Computer,Power (hp),Rmax [TFlop/s],Site\n1,A,5,3,s\n", "unknown unit"),
        ("Rank,Computer,Power,Rmax\n1,A,5,3\n", "--year"),
        ("name,speed,efficiency\na,1,1\na,2,2\n", "line 3: machine 'a' occurs twice"),
        ("name,speed,efficiency\n,1,1\n", "needs a name"),
        ("name,speed,efficiency\na,0,1\n", "speed 0"),
        ("name,speed,efficiency\na,nan,1\n", "speed nan"),
        ("name,speed,efficiency\na,-1,1\n", "'-1'"),
        ("name,speed,efficiency\na,1,\n", "efficiency"),
        ("name,speed,efficiency,count\na,1,1,1.5\n", "count"),
        ("name,speed,efficiency,cores\na,1,1,0\n", "cores"),
        ("name,speed,efficiency,embodied_kg\na,1,1,5\n", "lifetime_years"),
        ("name,speed,efficiency,embodied_kg,lifetime_years\na,1,1,5,0\n", "lifetime_years"),
        ("name,speed,efficiency,embodied_kg,lifetime_years\na,1,1,-5,2\n", "'-5'"),
        ("name,speed,efficiency,memory\na,1,1,much\n", "line 2: 'much'"),
        ("name,speed,efficiency,resources\na,1,1,gpu\n", "line 2: resources holds 'gpu'"),
        ("name,speed,efficiency,resources,unit_power\na,1,1,gpu:1,tpu:1:2\n", "line 2: unit_power holds 'tpu:1:2'"),
        ("name,speed,efficiency,pstates\na,1,1,1\n", "P-states"),
        ("name,speed,efficiency,pstates\na,1,1,0.5:1;1:1\n", "fastest"),
        ("name,speed,efficiency,idle_powr_w\na,1,1,1\n", "Did you mean 'idle_power_w'"),
        ("name,speed,efficiency,busy_power_w\na,10,1,20\n", "leave one of them out"),
        ("name,speed,efficiency\n", "no rows"),
    ],
)
def test_bad_tables_are_refused_in_one_line(write, text, part):
    """Each defect gives one line that names file, line or column."""
    with pytest.raises(InputError) as caught:
        read_machine_table(write("table.csv", text))
    message = str(caught.value)
    assert part in message
    assert "table.csv" in message
    assert "\n" not in message


def test_bad_joins_and_options_are_refused(write, tmp_path):
    """A join needs ranks on both sides, something to bring, and the same list."""
    green = write("g.csv", GREEN)
    own = write("own.csv", OWN)
    for first, second, part in (
        (own, green, "own format"),
        (green, own, "own format"),
        (green, write("p.csv", "Rank,Name,Site,Power\n7,a,b,1\n"), "neither cores nor Rmax"),
        (green, write("q.csv", "Rank,Name,Cores\n99,a,5\n"), "shares no TOP500 rank"),
        (green, write("r.csv", "Green500_Rank,Cores,Mflops/Watt\n1,5,3\n"), "no column with"),
        (green, tmp_path / "none", "cannot be read"),
    ):
        with pytest.raises(InputError, match=part):
            read_machine_table(first, join=second)
    with pytest.raises(InputError, match="1993"):
        read_machine_table(green, year=11)


def test_numbers_with_thousands_and_decimal_commas(write):
    """1,234.5 is a number, and 1,5 where semicolons part the columns."""
    text = 'Rank,Computer,Power,Rmax [TFlop/s]\n1,A,"1,234.5",3\n'
    assert read_machine_table(write("a", text)).frame["power_w"][0] == 1234500
    text = "Rank;Computer;Power;Rmax [TFlop/s]\n1;A;1,5;3\n"
    assert read_machine_table(write("b", text)).frame["power_w"][0] == 1500


@pytest.mark.parametrize(
    ("name", "join", "rows", "usable", "first"),
    [
        ("green500_top_201111.csv", None, 500, 500, (172.494e12, 85120.0, 2026.48e6)),
        ("green500_top_201111.csv", "TOP500_201111.tsv", 500, 500, (172.494e12, 85120, 2026.48e6)),
        ("TOP500_201111.tsv", None, 500, 283, (10.51e15, 12659890.0, 830.18e6)),
        ("green500_top_201611.csv", None, 500, 500, (3.307e15, 349500.0, 9462.09e6)),
        ("green500_top_201711.xlsx", None, 500, 305, (841.96e12, 49500.0, 17.009e9)),
        ("green500_top_202411.xlsx", None, 500, 199, (4.504e15, 67310.0, 72.7325024e9)),
    ],
)
def test_real_lists(shared_data, name, join, rows, usable, first):
    """Both CSV, both spreadsheets, the TSV alone and joined, with values read by eye."""
    other = shared_data(f"green500/{join}") if join else None
    table = read_machine_table(shared_data(f"green500/{name}"), join=other)
    frame = table.frame
    assert len(frame) == rows
    assert frame[["rmax_flops", "efficiency_flop_per_j"]].notna().all(axis=1).sum() == usable
    columns = ["rmax_flops", "power_w", "efficiency_flop_per_j"]
    assert frame.loc[0, columns].tolist() == pytest.approx(first, rel=1e-5)
    if join:
        assert frame.loc[0, "cores"] == 16384


def test_what_is_trusted_counts(write):
    """100 GFlop/s at 1 kW are 0.1 GFlop/J; 0.11 and 0.5 are listed."""
    table = write("file.txt", "Rank,Name,Rmax (GFlop/s),Power (kW),GFlops/Watt\n1,a,100,1,0.11\n2,b,100,1,0.5\n")

    def efficiencies(trust: str | None) -> list[float]:
        frame = read_machine_table(table, trust=trust).frame
        return (frame["efficiency_flop_per_j"] / 1e9).round(12).tolist()

    assert efficiencies(None) == [0.11, 0.1]  # the second is a factor of 5 off
    assert efficiencies("power") == [0.1, 0.1]
    assert efficiencies("efficiency") == [0.11, 0.5]
    with pytest.raises(InputError, match=r"--trust.*'both'.*power.*efficiency"):
        efficiencies("both")


@pytest.mark.parametrize(("n_rows", "n_bad"), [(100, 1), (300, 3), (100, 2), (99, 1)])
def test_rows_with_a_shifted_comma_are_left_out(write, n_rows: int, n_bad: int):
    """One in a hundred at most, each named; with more of them the list is refused at the first."""
    rows = [f"{k},m{k},100,50,2" for k in range(1, n_rows + 1)]
    for k in range(n_bad):
        rows[10 * k] = f"{10 * k + 1},Big, blue,100,50,2"
    path = write("file.txt", "Rank,Name,Rmax [TFlop/s],Power (kW),GFlops/W\n" + "\n".join(rows) + "\n")
    faults = [f"line {10 * k + 2}: column 'Rmax [TFlop/s]' is ' blue'" for k in range(n_bad)]
    if n_bad > n_rows / 100:
        with pytest.raises(InputError) as caught:
            read_machine_table(path)
        assert faults[0] in str(caught.value)
        return
    table = read_machine_table(path)
    assert len(table.frame) == n_rows - n_bad
    assert "Big" not in set(table.frame["name"])
    (note,) = table.notes
    assert all(fault in note for fault in faults)
