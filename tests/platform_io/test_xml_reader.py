from __future__ import annotations

import math
from xml.sax.saxutils import escape, quoteattr

import pytest
from cli_cases import platform_text, zone_xml
from hypothesis import given
from hypothesis import strategies as st

from gridsched.errors import InputError
from gridsched.platform_io import xml_document, xml_entries
from gridsched.platform_io.xml_reader import read_platform
from gridsched.platform_io.xml_values import escape_text, expand_radical, parse_quantity, quote_value

HOST = '<host id="a" speed="1f"/>'


def read(write, text):
    return read_platform(write("p.xml", text))


def refused(write, text) -> str:
    with pytest.raises(InputError) as caught:
        read(write, text)
    message = str(caught.value)
    assert "\n" not in message
    assert "p.xml" in message
    return message


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("1f", "speed", 1.0),
        ("2.5kf", "speed", 2500.0),
        ("100.0Mf", "speed", 1e8),
        ("16.673E9flops", "speed", 16.673e9),
        ("3gigaflops", "speed", 3e9),
        ("1Ef", "speed", 1e18),
        ("10Gbps", "bandwidth", 1.25e9),
        ("125MBps", "bandwidth", 1.25e8),
        ("1KiBps", "bandwidth", 1024.0),
        ("8Kibps", "bandwidth", 1024.0),
        ("50us", "time", 50 * 1e-6),
        ("2.4E-5s", "time", 2.4e-5),
        ("1m", "time", 60.0),
        ("2w", "time", 1209600.0),
        ("0", "time", 0.0),
    ],
)
def test_units_are_read_as_simgrid_reads_them(text, kind, value):
    """The units of SimGrid's DTD give SI values."""
    assert parse_quantity(text, kind) == (value, True)


@pytest.mark.parametrize("text", ["", "f", "1 f", "1Gflops", "1kF", "nanf", "inff", "1e400f"])
def test_what_is_no_speed_is_refused(text):
    """Unknown units, blanks, nan and infinity are no speed."""
    with pytest.raises(ValueError, match=r"number|unit|finite"):
        parse_quantity(text, "speed")


def test_nested_zones_hosts_and_energy(write):
    """Hosts come in document order with cores, P-states, powers and the zone that holds them."""
    platform = read(
        write,
        platform_text("""
<config><prop id="network/model" value="CM02"/></config>
<AS id="root" routing="Full">
  <zone id="left" routing="Full">
    <host id="b" speed="100.0Mf, 50Mf" core="4">
      <prop id="wattage_per_state" value="10:12:20, 9:15"/>
      <prop id="wattage_off" value="1.5"/>
      <prop id="boot_time_s" value="30"/>
    </host>
  </zone>
  <zone id="right" routing="Vivaldi">
    <peer id="a" speed="1Gf" bw_in="1MBps" bw_out="1MBps" coordinates="0 0 0"/>
  </zone>
</AS>"""),
    )
    b, a = platform.hosts
    assert (b.name, b.cores, b.off_w, b.boot_time_s, b.has_energy) == ("b", 4, 1.5, 30.0, True)
    assert [(s.speed, s.idle_w, s.epsilon_w, s.busy_w) for s in b.pstates] == [
        (1e8, 10.0, 12.0, 20.0),
        (5e7, 9.0, 9.0, 15.0),
    ]
    assert (a.name, a.has_energy, a.pstates[0].busy_w) == ("a", False, 0.0)
    assert [(c.name, c.hosts) for c in platform.clusters] == [("left", (0,)), ("right", (1,))]
    assert len(platform.warnings) == 1
    assert "no wattage_per_state" in platform.warnings[0]


def test_cluster_cabinet_and_topologies(write):
    """Radicals, prefixes and suffixes spell hosts out; a torus makes no more than its nodes."""
    common = 'speed="1Gf" bw="1GBps" lat="1us"'
    platform = read(
        write,
        platform_text(f"""
<zone id="root" routing="Floyd">
  <cluster id="c" prefix="n-" suffix=".x" radical="0-2,7" core="2" {common}
           bb_bw="2GBps" bb_lat="5ms">
    <prop id="wattage_per_state" value="1:2"/><prop id="uplink" value="c_backbone"/>
  </cluster>
  <cluster id="t" prefix="t" suffix="" radical="0-9" topology="TORUS" topo_parameters="2,2"
           {common}/>
  <zone id="k" routing="Cluster"><cabinet id="cab" prefix="k" suffix="" radical="5" {common}/>
  </zone>
</zone>"""),
    )
    names = [host.name for host in platform.hosts]
    assert names == ["n-0.x", "n-1.x", "n-2.x", "n-7.x", "t0", "t1", "t2", "t3", "k5"]
    assert [len(c.hosts) for c in platform.clusters] == [4, 4, 1]
    assert (platform.clusters[0].bandwidth, platform.clusters[0].latency_s) == (2e9, 5e-3)
    assert platform.hosts[0].cores == 2


def test_uplink_and_master(write):
    """The uplink property names a link; the master is not a computing host."""
    platform = read(
        write,
        zone_xml("""<prop id="uplink" value="wan"/>
<host id="m" speed="1f"><prop id="role" value="master"/></host>
<host id="a" speed="1f"/><link id="wan" bandwidth="10Bps" latency="3ms"/>"""),
    )
    assert platform.master is not None
    assert platform.master.name == "m"
    assert [host.name for host in platform.hosts] == ["a"]
    assert (platform.clusters[0].bandwidth, platform.clusters[0].latency_s) == (10.0, 3 * 1e-3)


def test_host_id_orders_hosts_across_zones(write):
    """The property host_id numbers hosts where clusters would force another order."""
    text = zone_xml(
        "".join(
            f'<host id="{name}" speed="1f"><prop id="host_id" value="{k}"/></host>'
            for name, k in (("x", 2), ("y", 0), ("z1", 1))
        )
    )
    platform = read(write, text)
    assert [host.name for host in platform.hosts] == ["y", "z1", "x"]
    assert platform.clusters[0].hosts == (2, 0, 1)
    assert "host_id" in refused(write, text.replace('value="2"', 'value="1"'))


def test_blank_lines_before_the_declaration(write):
    """SimGrid accepts them, and line numbers still count them."""
    assert len(read(write, "\n\n" + zone_xml(HOST))) == 1
    assert "line 7" in refused(write, "\n\n" + zone_xml('<host id="a" speed="1x"/>'))


def test_wattage_count_mismatch_has_the_agreed_text(write):
    """The error names host, both counts and what SimGrid needs."""
    message = refused(
        write,
        zone_xml('<host id="n3" speed="5f,4f,3f,2f,1f"><prop id="wattage_per_state" value="1:2,1:2,1:2,1:2"/></host>'),
    )
    assert message.endswith(
        "p.xml: host 'n3' has 5 speeds but 4 wattage_per_state entries; SimGrid needs one for each."
    )


def host_with(prop: str, value: str) -> str:
    return zone_xml(f'<host id="a" speed="1f"><prop id="{prop}" value="{value}"/></host>')


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "empty"),
        ("  \n ", "empty"),
        (zone_xml(HOST)[:-40], "line"),
        (b"\x7fELF\x00\x00\x01", "binary"),
        ("hello", "not well-formed"),
        ("<deployment/>", "<deployment>"),
        (platform_text("", version="3"), "simgrid_update_xml"),
        ('<?xml version="1.0"?>\n<platform_description version="1"/>', "simgrid_update_xml"),
        (platform_text("", version="5"), "version"),
        (platform_text(""), "no host computes"),
        (
            zone_xml(
                '<host id="a" speed="1f"/><link id="l" bandwidth="1Bps"/>'
                '<trace id="t" periodicity="9">1 -1\n2 1</trace>'
                '<trace_connect kind="LINK_AVAIL" trace="t" element="l"/>'
            ),
            "trace 't' of link 'l': '1 -1': numbers of 0 or more",
        ),
        (
            zone_xml('<host id="a" speed="1f"/><link id="l" bandwidth="1Bps" state_file="no.txt"/>'),
            "state_file 'no.txt' of link 'l': ",
        ),
        (zone_xml('<host id="a" speed="0f"/>'), "no host computes"),
        (zone_xml('<host id="a" speed="1f,0f"/>'), "speed 0 in P-state 1, and the file"),
        (zone_xml('<host id="a" speed="-1f"/>'), "0 or more"),
        (zone_xml('<host id="a" speed="nanf"/>'), "not finite"),
        (zone_xml('<host id="a" speed="5furlongs"/>'), "unknown unit"),
        (zone_xml('<host id="a"/>'), "'speed'"),
        (zone_xml('<host speed="1f"/>'), "'id'"),
        (zone_xml('<host id="a" speed="1f" core="0"/>'), "core"),
        (zone_xml('<host id="a" speed="1f" pstate="1"/>'), "pstate"),
        (zone_xml(HOST + HOST), "taken already (line 5)"),
        (zone_xml(HOST + '<router id="a"/>'), "taken already"),
        (zone_xml(HOST + '<link id="l" bandwidth="1"/><link id="l" bandwidth="1"/>'), "two links"),
        (zone_xml(HOST + '<link id="l" bandwidth="-1Bps"/>'), "bandwidth of link 'l'"),
        (zone_xml(HOST + '<link id="l" bandwidth="1Bps" latency="5parsec"/>'), "unknown unit"),
        (zone_xml('<prop id="uplink" value="lo"/>' + HOST), "does not define"),
        (zone_xml(HOST + '<storage id="s"/>'), "removed"),
        (zone_xml(HOST + "<machine/>"), "<machine>"),
        (host_with("wattage_per_state", "1:-2"), "0 W or more"),
        (host_with("wattage_per_state", "1:nan"), "0 W or more"),
        (host_with("wattage_per_state", "1:two"), "not a number"),
        (host_with("wattage_per_state", "1"), "Idle:AllCores"),
        (host_with("boot_time_s", "-3"), "boot_time_s"),
        (
            zone_xml(
                '<host id="a" speed="1f"><prop id="wattage_per_state" value="1:2"/>'
                '<prop id="wattage_off" value="x"/></host>'
            ),
            "wattage_off",
        ),
        (
            zone_xml(
                '<cluster id="c" prefix="h" suffix="" radical="0-3" speed="1f" bw="1Bps" lat="0">'
                '<prop id="role" value="master"/></cluster><cluster id="d" prefix="i" suffix="" '
                'radical="0-3" speed="1f" bw="1Bps" lat="0"><prop id="role" value="master"/>'
                "</cluster>" + HOST
            ),
            "2 hosts have the property role=master",
        ),
        (
            zone_xml('<cluster id="c" prefix="h" suffix="" radical="0-9999999" speed="1f" bw="1Bps" lat="0"/>'),
            "exceed 300,000 hosts",
        ),
        (
            zone_xml('<cluster id="c" prefix="h" suffix="" radical="0\u221215" speed="1f" bw="1Bps" lat="0"/>'),
            "must read like '0-9,12', with '-' itself",
        ),
        (zone_xml('<cluster id="c" prefix="h" suffix="" radical="a-b" speed="1f" bw="1Bps" lat="0"/>'), "0-9,12"),
    ],
)
def test_bad_files_are_refused_in_one_line(write, text, part):
    """Each defect gives one line that names the file and what is wrong."""
    assert part in refused(write, text)


@pytest.mark.parametrize(
    "prolog",
    [
        '<!DOCTYPE platform [<!ENTITY e "x">]>',
        '<!DOCTYPE platform [<!ENTITY e SYSTEM "file:///etc/hostname">]>',
        '<!DOCTYPE platform [<!ENTITY % e SYSTEM "http://127.0.0.1/x.dtd"> %e;]>',
        '<!DOCTYPE platform SYSTEM "elsewhere.dtd">',
    ],
)
def test_entities_are_refused(write, prolog):
    """Entities that expand or reach outside the file are not followed."""
    body = '<zone id="z" routing="Full"><host id="&e;" speed="1f"/></zone>'
    text = f'{prolog}<platform version="4.1">{body}</platform>'
    assert "entit" in refused(write, text)


def test_billion_laughs_do_not_expand(write):
    """Nested entities are refused at their declaration."""
    text = '<!DOCTYPE p [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><platform version="4.1"/>'
    assert "entit" in refused(write, text)


def test_missing_folder_and_huge_files_are_refused(tmp_path, write, monkeypatch):
    """A file that is absent, a folder or too large is named."""
    for path in (tmp_path / "none.xml", tmp_path):
        with pytest.raises(InputError, match="cannot be read"):
            read_platform(path)
    monkeypatch.setattr(xml_document, "MAX_BYTES", 10)
    assert "MB" in refused(write, zone_xml(HOST))


def test_deep_nesting_is_refused(write):
    """Nesting beyond any platform ends in one line, not in a recursion error."""
    deep = "".join(f'<zone id="z{k}" routing="Full">' for k in range(200))
    assert "nest deeper" in refused(write, platform_text(deep))


def test_the_limit_on_hosts_counts_all_clusters(write, monkeypatch):
    """Several clusters together may not pass the limit."""
    monkeypatch.setattr(xml_entries, "MAX_HOSTS", 5)
    cluster = '<cluster id="{0}" prefix="{0}" suffix="" radical="1-3" speed="1f" bw="1Bps" lat="0"/>'
    text = platform_text(f'<zone id="z" routing="Full">{cluster.format("c")}{cluster.format("d")}</zone>')
    assert "exceed 5 hosts" in refused(write, text)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 10)), min_size=1, max_size=6))
def test_radicals_expand_to_their_ranges(pairs):
    """A radical is the concatenation of its ranges."""
    text = ",".join(f"{a}-{a + n}" if n else f"{a}" for a, n in pairs)
    expected = [i for a, n in pairs for i in range(a, a + n + 1)]
    assert list(expand_radical(text)) == expected


@given(st.binary(max_size=300))
def test_arbitrary_bytes_never_crash_the_reader(tmp_path_factory, data):
    """Whatever the bytes, the answer is an InputError."""
    path = tmp_path_factory.mktemp("bytes") / "p.xml"
    path.write_bytes(data)
    with pytest.raises(InputError):
        read_platform(path)


@pytest.mark.parametrize("cut", range(0, 400, 37))
def test_truncated_files_are_refused(write, cut):
    """A file cut anywhere before its end is not well-formed."""
    text = zone_xml(HOST * 1 + "".join(f'<host id="h{k}" speed="1f"/>' for k in range(9)))
    assert "p.xml" in refused(write, text[: len(text) - 2 - cut])


def test_infinite_uplinks_are_the_default(write):
    """Without the property the uplink is ideal."""
    cluster = read(write, zone_xml(HOST)).clusters[0]
    assert (cluster.bandwidth, cluster.latency_s) == (math.inf, 0.0)


def test_role_of_a_cluster_marks_its_first_host(write):
    """All hosts of a cluster have its properties; one of them is the master."""
    body = (
        '<cluster id="k" prefix="k" suffix="" radical="5-7" speed="1f" bw="1GBps" lat="0s">'
        '<prop id="role" value="master"/><prop id="wattage_per_state" value="1:2"/></cluster>'
    )
    platform = read_platform(write("file.txt", platform_text(body)))
    assert platform.master.name == "k5"
    assert [host.name for host in platform.hosts] == ["k6", "k7"]


def test_comments_may_hold_two_hyphens(write):
    """XML has none, SimGrid takes them, and people draw with them; lines stay what they were."""
    body = '<host id="a" speed="1f"/>\n<!---- two --\n -- lines --->\n<host id="b" speed="0q"/>'
    with pytest.raises(InputError, match=r"line 8.*'b'"):
        read_platform(write("file.txt", zone_xml(body)))
    assert len(read_platform(write("file.txt", zone_xml(body.replace("0q", "1f")))).hosts) == 2


@pytest.mark.parametrize("text", ["", "a", "a&b<c>", "'", '"', "\"'&amp;", "\n\t\r \u00e9"])
def test_texts_are_written_as_the_standard_library_writes_them(text):
    """Its module is not used: it takes longer to load than all that a small run computes."""
    assert quote_value(text) == quoteattr(text)
    assert escape_text(text) == escape(text)


def test_what_batsim_means_for_sleep_is_named(write):
    """Which P-states they are, and the properties that mean the same here; without any it is not reported."""
    speeds = 'speed="100Mf,1e-9Mf,0.16f,0.0066f"'
    text = '<host id="{}" {}><prop id="sleep_pstates" value="{}"/></host>'
    hosts = [text.format("a", speeds, "1:2:3"), text.format("b", speeds, "1:2:3"), text.format("c", speeds, " ")]
    notes = [each for each in read(write, zone_xml("".join(hosts))).warnings if "sleep_pstates" in each]
    assert len(notes) == 1
    for part in ("'a', 'b'", "1:2:3", "boot_pstate", "shutdown_pstate"):
        assert part in notes[0]
    assert "'c'" not in notes[0]
