"""Options of SimGrid 3 in a platform's <config>: renamed or left out, and told once."""

from __future__ import annotations

import json

import pytest
from cli_cases import host_xml, platform_xml

from gridsched.platform_io.xml_edit import current_platform_xml

CONFIG = """<config id="General">
  <prop id="network/coordinates" value="yes"></prop>
  <prop value='compound'
        id='host/model'/>
  <prop id="network/TCP_gamma" value="4194304"/>
  <prop id="cpu/optim" value="TI"/> <prop id="workstation/model" value="compound"/>
  <prop id="contexts/guard_size" value="0"/> <prop id="workstation/model" value="default"/>
  <prop id="smpi/os" value="0:1:2"/> <prop id="smpi/bw_factor" value="0:0.5"/>
  <prop id="precision/work-amount" value="1e-5"/>
  <prop id="tracing" value="yes"/> <prop id="tracing/filename" value="nowhere/x.trace"/>
</config>
"""
ZONE = f'<zone id="z" routing="Full">{host_xml("a")}{host_xml("b")}</zone>'


@pytest.fixture
def files(tmp_path) -> list[object]:
    """Return the options of an old platform and a bag."""
    (tmp_path / "old.xml").write_text(platform_xml(CONFIG + ZONE))
    (tmp_path / "bag.csv").write_text("id,flops\n1,1000\n2,500\n")
    return ["--platform", tmp_path / "old.xml", "--workload", tmp_path / "bag.csv"]


def test_what_simgrid_knows_stays_and_each_line_where_it_was(files):
    """New names in the place of old ones; nothing else changes, not even the lines."""
    old = files[1].read_text()
    new = current_platform_xml(files[1]).decode()
    assert new.count("\n") == old.count("\n")
    assert '<prop id="network/TCP-gamma" value="4194304"/>' in new
    assert '<prop id="smpi/bw-factor" value="0:0.5"/>' in new
    assert '<prop id="precision/work-amount" value="1e-5"/>' in new
    assert new.count('<prop id="host/model" value="default"/>') == new.count("host/model") == 1
    for gone in ("coordinates", "compound", "cpu/optim", "smpi/os", "tracing", "contexts", "workstation"):
        assert gone not in new
    files[1].write_text(platform_xml(ZONE))
    assert current_platform_xml(files[1]) is None


@pytest.mark.usefixtures("simgrid")
def test_such_a_file_runs_and_is_checked(gridsched, files):
    """SimGrid refuses it as it is, or crashes; energies agree, and a warning names them."""
    assert gridsched("validate", *files, "--schedulers", "wq,mct").status == 0
    (warning,) = gridsched("run", *files, "--scheduler", "wq").complaints
    assert "network/coordinates, host/model, network/TCP_gamma (network/TCP-gamma)" in warning
    checked = gridsched("platform", "check", files[1])
    assert checked.status == 0
    assert "SimGrid: loads it" in checked.out


@pytest.mark.usefixtures("simgrid")
def test_what_nobody_knows_is_refused(refused, files):
    """It may mean something."""
    files[1].write_text(platform_xml(CONFIG.replace("network/coordinates", "network/x") + ZONE))
    line = refused("run", *files)
    assert "old.xml, line 5: the option 'network/x'" in line
    assert "network/model" in line


TRACING = '<prop id="tracing" value="yes"/><prop id="tracing/filename" value="{victim}"/>'


@pytest.mark.usefixtures("simgrid")
@pytest.mark.parametrize(
    "config",
    [
        TRACING,
        '<prop id="network/crosstraffic" value="1 tracing:yes tracing/filename:{victim}"/>',
        '<prop id="network/crosstraffic" value="1,tracing:yes,tracing/filename:{victim}"/>',
        f"<!-- </config> -->{TRACING}",
        TRACING.replace("tracing", "trac&#105;ng"),
        TRACING.replace("tracing", "trac&#x69;ng"),
        '<prop id="model-check/dot-output" value="{victim}"/>',
        '<prop id="network/crosstraffic:1 tracing/filename" value="{victim}"/>',
        '<prop id="cpu/optim" value="TI"/><prop id="cpu/optim" value="Lazy tracing:yes"/>',
    ],
)
def test_no_platform_file_has_simgrid_write_another(gridsched, files, tmp_path, config: str):
    """Whoever gave it: neither a run nor a check touches the file that its <config> names."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    files[1].write_text(platform_xml(f"<config>{config.format(victim=victim)}</config>{ZONE}"))
    before = sorted(tmp_path.iterdir())
    status = gridsched("run", *files, "--power", "none").status
    assert gridsched("platform", "check", files[1]).status in (0, 1, 2)
    assert victim.read_text() == "precious"
    assert sorted(tmp_path.iterdir()) == before
    # traces have no effect here and are left out, however they are spelled
    assert status == (0 if '<prop id="trac' in config else 2)


@pytest.mark.usefixtures("simgrid")
def test_a_route_that_simgrid_rules_out_is_refused_in_one_line(refused, gridsched, files):
    """SimGrid 4.1 takes no route of a zone to itself, which its own old examples have."""
    cluster = '<cluster id="c" prefix="n" suffix="" radical="0-1" speed="1f" bw="1Bps" lat="1s"/>'
    route = (
        '<link id="l" bandwidth="1Bps" latency="1s"/><zoneRoute src="c" dst="c" '
        'gw_src="nc_router" gw_dst="nc_router"><link_ctn id="l"/></zoneRoute>'
    )
    files[1].write_text(platform_xml(f'<zone id="z" routing="Full">{cluster}{route}</zone>'))
    line = refused("run", *files, "--power", "1:2:3")
    assert "Cannot define a NetzoneRoute from 'nc_router' to itself" in line
    assert "Cannot define a NetzoneRoute" in gridsched("platform", "check", files[1]).out


@pytest.mark.usefixtures("simgrid")
def test_profiles_of_such_a_file_are_found(gridsched, tmp_path):
    """Files of profiles lie beside the platform, also where SimGrid loads an edited copy.

    10 kB take 3 s at 1 kB/s and the rest at 500 B/s, so about 17 s.
    """
    folder = tmp_path / "a b, ü"
    folder.mkdir()
    old = '<config><prop id="network/coordinates" value="yes"/></config>'
    hosts = host_xml("a") + host_xml("b", speed="10f")
    link = '<link id="l" bandwidth="1kBps" latency="0s" bandwidth_file="link.txt"/>'
    way = '<route src="a" dst="b"><link_ctn id="l"/></route>'
    path = folder / "old.xml"
    path.write_text(platform_xml(f'{old}<zone id="z" routing="Full">{hosts}{link}{way}</zone>'))
    (folder / "link.txt").write_text("3 500\n")
    (tmp_path / "bag.csv").write_text("id,flops,input_bytes\n1,1,10000\n")
    assert "SimGrid: loads it" in gridsched("platform", "check", path).out
    row = json.loads(
        gridsched(
            "run",
            "--platform",
            path,
            "--workload",
            tmp_path / "bag.csv",
            "--master",
            "a",
            "--json",
            "--cfg",
            "network/model:CM02",
            "--cfg",
            "network/crosstraffic:0",
        ).out
    )
    assert row["makespan_s"] == pytest.approx(17.1)
    (folder / "link.txt").unlink()
    refused = gridsched("platform", "check", path)
    assert "bandwidth_file 'link.txt' of link 'l': " in refused.out


@pytest.mark.usefixtures("simgrid")
def test_a_network_model_that_simgrid_is_built_without(gridsched, refused, files):
    """Without messages any model does; else one line says which one to take."""
    link = '<link id="l" bandwidth="1kBps" latency="0s"/>'
    way = f'{link}<route src="a" dst="b"><link_ctn id="l"/></route>'
    ns3 = '<config><prop id="network/model" value="ns-3"/></config>'
    files[1].write_text(platform_xml(ns3 + ZONE.replace("</zone>", f"{way}</zone>")))
    words = "network/model is ns-3, with which SimGrid of PyPI is not built"
    assert words in gridsched("platform", "check", files[1]).out
    assert gridsched("run", *files).status == 0
    files[3].write_text("id,flops,input_bytes\n1,1000,100\n")
    assert words in refused("run", *files, "--master", "a")
    assert gridsched("run", *files, "--master", "a", "--cfg", "network/model:CM02").status == 0
