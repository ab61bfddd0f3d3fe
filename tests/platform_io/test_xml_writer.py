from __future__ import annotations

import math
import shlex
import string
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsched.errors import InputError
from gridsched.model.platform import Cluster, Host, Platform, PState
from gridsched.platform_io.xml_document import read_document
from gridsched.platform_io.xml_reader import read_platform
from gridsched.platform_io.xml_writer import NetworkLinks, comment_text, platform_xml, write_platform

watts = st.floats(0, 1e9)
positive = st.floats(1e-6, 1e17)
names = st.text(st.sampled_from("ab-_.é<>&\"' \t1"), min_size=1, max_size=6)


@st.composite
def hosts(draw, name: str) -> Host:
    has_energy = draw(st.booleans())
    watt = watts if has_energy else st.just(0.0)
    states = draw(st.lists(st.builds(PState, positive, watt, watt, watt), min_size=1, max_size=3))
    return Host(
        name, tuple(states), draw(st.integers(1, 64)), draw(watt), draw(st.sampled_from([0.0, 12.5])), has_energy
    )


@st.composite
def platforms(draw) -> Platform:
    chosen = draw(st.lists(names, min_size=1, max_size=7, unique=True))
    everyone = [draw(hosts(name)) for name in chosen]
    master = everyone.pop() if len(everyone) > 1 and draw(st.booleans()) else None
    order = draw(st.permutations(range(len(everyone))))
    cuts = sorted(draw(st.sets(st.integers(1, len(everyone)), max_size=3)) | {len(everyone)})
    uplinks = st.sampled_from([(math.inf, 0.0), (math.inf, 0.25), (1.25e9 / 3, 0.0), (10.0, 0.1)])
    clusters = [
        Cluster(draw(names), tuple(order[start:stop]), *draw(uplinks))
        for start, stop in zip([0, *cuts], cuts, strict=False)
    ]
    return Platform(tuple(everyone), tuple(clusters), master)


@given(platforms(), st.sampled_from([None, NetworkLinks(1e9, 1e-6, 2e9, 1e-3)]))
def test_reading_back_gives_the_same_platform(tmp_path_factory, platform, network):
    """Every speed, power, name, cluster and order survives exactly."""
    path = tmp_path_factory.mktemp("p") / "p.xml"
    write_platform(platform, path, command="gridsched x --y", network=network)
    assert read_platform(path) == replace(platform, name=str(path))


def test_a_platform_without_clusters_keeps_each_host_alone(tmp_path):
    """A cluster may be called as its host although SimGrid's ids must differ."""
    platform = Platform((Host("h1", (PState(1.0),)), Host("h2", (PState(2.0),))))
    write_platform(platform, tmp_path / "p.xml", command="x")
    assert [c.name for c in read_platform(tmp_path / "p.xml").clusters] == ["h1", "h2"]


@given(st.lists(st.text(string.ascii_letters + "- '\"\\$*", max_size=8).map(lambda t: f"--{t}"), max_size=5))
def test_comments_hold_any_command_and_a_shell_reads_it(words):
    """No two hyphens meet, and splitting the comment as a shell does gives the command."""
    text = comment_text(shlex.join(words))
    assert "--" not in text
    assert shlex.split(text) == words


def test_the_command_stands_in_the_comment(tmp_path):
    """The file carries its command and stays well-formed whatever that is."""
    path = tmp_path / "p.xml"
    platform = Platform((Host("a", (PState(1.0),)),))
    write_platform(platform, path, command="gridsched --hosts 3 -- 'x--y' \x07 -")
    assert "-\\-hosts 3" in path.read_text()
    assert read_document(path).tag == "platform"


def test_existing_files_are_kept(tmp_path):
    """Only force replaces a file; nothing is left beside it."""
    path = tmp_path / "p.xml"
    path.write_text("precious")
    platform = Platform((Host("a", (PState(1.0),)),))
    with pytest.raises(InputError, match="--force"):
        write_platform(platform, path, command="x")
    assert path.read_text() == "precious"
    write_platform(platform, path, command="x", force=True)
    assert path.read_text() == platform_xml(platform, command="x")
    assert [each.name for each in tmp_path.iterdir()] == ["p.xml"]
    with pytest.raises(InputError, match="cannot be written"):
        write_platform(platform, tmp_path / "no" / "p.xml", command="x")


ONE = Host("a", (PState(1.0),))


@pytest.mark.parametrize(
    ("platform", "part"),
    [
        (Platform(()), "without computing hosts"),
        (Platform((ONE, replace(ONE, cores=2))), "two hosts"),
        (Platform((replace(ONE, pstates=(PState(0.0),)),)), "above 0"),
        (Platform((replace(ONE, pstates=(PState(1.0, -1.0),)),)), "0 W or more"),
        (Platform((replace(ONE, off_w=math.nan),)), "0 W or more"),
        (Platform((replace(ONE, name="a\x01"),)), "name"),
        (Platform((replace(ONE, name=""),)), "name"),
        (Platform((ONE,), (Cluster("c", (0,)), Cluster("d", ()))), "holds no host"),
        (Platform((ONE,), (Cluster("c", (0,), 0.0),)), "bandwidth"),
        (Platform((ONE,), bystanders=(replace(ONE, name="b"),)), "compute nothing"),
    ],
)
def test_what_simgrid_cannot_load_is_not_written(tmp_path, platform, part):
    """The writer refuses it in one line and leaves no file."""
    with pytest.raises(InputError, match=part):
        write_platform(platform, tmp_path / "p.xml", command="x")
    assert list(tmp_path.iterdir()) == []
