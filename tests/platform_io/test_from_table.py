from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsched.errors import InputError
from gridsched.metrics.resource_energy import idle_power_w
from gridsched.platform_io.from_table import platform_from_table
from gridsched.platform_io.recipe import PlatformRecipe, parse_ranks
from gridsched.platform_io.tables import read_machine_table

GREEN = (
    "Green500_Rank,Name,Computer,Site,Mflops/Watt,Power,Rmax [TFlop/s],Year\n"
    "1,Ann,Ax,Rome,2000,50,100,2011\n"
    "2,Bob,Bx,Oslo,1000,20,20,2010\n"
    "3,Cid,Cx,Rome,500,,,2010\n"
    "4,Dan,Ax,Oslo,500,80,40,2009\n"
)
TABLE2 = {
    6000: 0.070,
    7000: 0.045,
    8000: 0.098,
    9000: 0.094,
    10000: 0.066,
    11000: 0.018,
    12000: 0.049,
    13000: 0.081,
    14000: 0.029,
}
LEVELS = "name,speed,efficiency\n" + "".join(f"s{s},{s},{e}\n" for s, e in TABLE2.items())


@pytest.fixture
def build(write):
    """Build a platform from a text and a recipe's options."""

    def make(text=GREEN, **options):
        return platform_from_table(read_machine_table(write("file.txt", text)), PlatformRecipe(**options))

    return make


def test_one_host_for_each_usable_row(build):
    """Real speeds and efficiencies; the row without power is left out; names are the machines'."""
    platform = build()
    assert [host.name for host in platform.hosts] == ["Ann", "Bob", "Dan"]
    assert platform.speed[:, 0].tolist() == [1e14, 2e13, 4e13]
    assert platform.efficiency().tolist() == [2e9, 1e9, 5e8]
    assert platform.busy_w[:, 0].tolist() == [5e4, 2e4, 8e4]
    assert platform.idle_w[:, 0].tolist() == [1.5e4, 6e3, 2.4e4]
    assert "30% of the busy power is assumed" in platform.warnings[0]
    assert [c.hosts for c in platform.clusters] == [(0, 1, 2)]


def test_names_of_machines_become_names_of_hosts(build):
    """Letters that suit a host; if a name lacks, or several share one, the rank decides."""
    text = "Rank,Name,Rmax (GFlop/s),Power (kW)\n1,El Toro (B),100,1\n2,,100,1\n3,Ann,100,1\n4,ann,100,1\n"
    assert [host.name for host in build(text).hosts] == ["El-Toro-B", "rank2", "Ann-rank3", "ann-rank4"]
    numbered = "Rank,Name,Rmax (GFlop/s),Power (kW)\n1,Ann,100,1\n2,Ann-1,100,1\n"
    names = [host.name for host in build(numbered, hosts=3).hosts]
    assert names == ["Ann-rank1-1", "Ann-rank1-2", "Ann-1-rank2"]


def test_hosts_are_dealt_in_equal_numbers(build):
    """Seven hosts on three rows: three, two, two."""
    names = [host.name for host in build(hosts=7).hosts]
    assert names == ["Ann-1", "Ann-2", "Ann-3", "Bob-1", "Bob-2", "Dan-1", "Dan-2"]
    assert [host.name for host in build(hosts=2).hosts] == ["Ann", "Bob"]


def test_rows_and_pattern(build):
    """Rank ranges and a pattern on name, computer or site choose rows together."""
    assert [h.name for h in build(rows="2-4").hosts] == ["Bob", "Dan"]
    assert [h.name for h in build(name_pattern="oslo").hosts] == ["Bob", "Dan"]
    assert [h.name for h in build(name_pattern="^ann$").hosts] == ["Ann"]
    assert [h.name for h in build(rows="1,3-4", name_pattern="Ax").hosts] == ["Ann", "Dan"]


def test_scaled_efficiency_keeps_the_real_power(build):
    """eps_sim = s_sim * eps_real / s_real: a host burns the real machine's watts."""
    platform = build(speed_levels=(1000.0, 2000.0, 4000.0), hosts=6, seed=3)
    by_name = {host.name.split("-")[0]: host.pstates[0] for host in platform.hosts}
    assert {name: state.speed for name, state in by_name.items()} == {"Ann": 1000.0, "Bob": 2000.0, "Dan": 4000.0}
    assert [by_name[n].busy_w for n in ("Ann", "Bob", "Dan")] == pytest.approx([5e4, 2e4, 8e4])


def test_levels_are_dealt_to_rows_and_ids_shuffled(build):
    """Fewer levels than rows: equal numbers, in order; the seed moves the ids only."""
    first = build(LEVELS, speed_levels=(10.0, 20.0, 30.0), hosts=90, seed=1)
    assert Counter(first.speed[:, 0].tolist()) == {10.0: 30, 20.0: 30, 30.0: 30}
    again = build(LEVELS, speed_levels=(10.0, 20.0, 30.0), hosts=90, seed=1)
    other = build(LEVELS, speed_levels=(10.0, 20.0, 30.0), hosts=90, seed=2)
    assert first == again
    assert first.speed[:, 0].tolist() != other.speed[:, 0].tolist()
    assert sorted(first.speed[:, 0]) == sorted(other.speed[:, 0])


def test_uniform_speeds_take_the_nearest_efficiency(build):
    """Algorithms A7: continuous speeds, efficiency and cluster of the nearest table level."""
    platform = build(LEVELS, speed_uniform=(6000, 14000), hosts=50, clusters="speed", seed=4)
    levels = np.array(list(TABLE2))
    nearest = levels[np.abs(platform.speed[:, :1] - levels).argmin(axis=1)]
    assert platform.efficiency() == pytest.approx([TABLE2[int(level)] for level in nearest])
    names = [f"speed-{level}" for level in nearest]
    assert [platform.clusters[c].name for c in platform.cluster_of] == names
    assert len(set(platform.speed[:, 0])) == 50


def test_of_two_equally_near_levels_the_lower_counts(build):
    """7,500 flop/s lies between 7,000 and 8,000: the efficiency of 7,000 is taken."""
    platform = build(LEVELS, speed_uniform=(7500, 7500), hosts=2)
    assert platform.efficiency() == pytest.approx([0.045, 0.045])


def test_idle_power_range_share_and_table(build, write):
    """A drawn range is equal in all P-states, a share follows each P-state's busy power."""
    states = ((1.0, 1.0), (0.5, 0.4))
    sampled = build(idle_power_w=(4, 12), pstates=states, seed=5)
    assert ((sampled.idle_w >= 4) & (sampled.idle_w <= 12)).all()
    assert (sampled.idle_w[:, 0] == sampled.idle_w[:, 1]).all()
    shared = build(idle_share=0.5, pstates=states)
    assert (shared.idle_w == 0.5 * shared.busy_w).all()
    assert shared.busy_w[0].tolist() == [5e4, 2e4]
    assert shared.speed[0].tolist() == [1e14, 5e13]
    own = "name,speed,efficiency,idle_power_w\na,10,1,4\nb,10,1,\n"
    assert build(own).idle_w[:, 0].tolist() == [4.0, 3.0]


def test_streams_do_not_shift_each_other(build):
    """Drawing idle powers leaves the shuffle as it was, and the other way round."""
    options = {"speed_levels": (1e6, 2e6, 3e6), "hosts": 30, "seed": 9}
    plain = build(**options)
    assert (plain.speed == build(**options, idle_power_w=(1, 2)).speed).all()
    unshuffled = build(hosts=30, seed=9, idle_power_w=(1, 2))
    assert (unshuffled.idle_w == build(**options, idle_power_w=(1, 2)).idle_w).all()


def test_cores_and_epsilon(build):
    """Cores share the machine's speed; epsilon is busy power on one core and idle on more."""
    one, four = build(rows="1", idle_share=0.1), build(rows="1", idle_share=0.1, cores=4)
    assert one.hosts[0].pstates[0].epsilon_w == 5e4
    state = four.hosts[0].pstates[0]
    assert (four.hosts[0].cores, state.speed, state.epsilon_w) == (4, 2.5e13, 5e3)
    assert four.efficiency().tolist() == one.efficiency().tolist()


def test_own_table_columns(build):
    """Count, P-states, off power, cluster and cores come from the table; options override."""
    text = (
        "name,speed,efficiency,idle_power_w,count,pstates,off_power_w,cluster,cores\n"
        "a,100,2,4,2,1:1;0.5:0.5,1,left,2\nb,50,5,3,1,,,right,\n"
    )
    platform = build(text)
    assert [h.name for h in platform.hosts] == ["a-1", "a-2", "b"]
    assert [h.cores for h in platform.hosts] == [2, 2, 1]
    assert [len(h.pstates) for h in platform.hosts] == [2, 2, 1]
    assert [h.off_w for h in platform.hosts] == [1, 1, 0]
    assert [(c.name, c.hosts) for c in platform.clusters] == [("left", (0, 1)), ("right", (2,))]
    other = build(text, hosts=2, cores=1, off_power_w=0.5, pstates=((1.0, 1.0),), clusters=1)
    assert [(h.name, h.cores, h.off_w, len(h.pstates)) for h in other.hosts] == [("a", 1, 0.5, 1), ("b", 1, 0.5, 1)]


@pytest.mark.parametrize(
    ("count", "cores", "words"),
    [("9223372036854775807", "1", "count above"), ("9007199254740992", "1", "hosts"), ("1", "1e19", "cores above")],
)
def test_counts_that_no_machine_has_are_refused(build, count, cores, words):
    """Also where their sum is beyond 64 bits, or they are."""
    with pytest.raises(InputError, match=words):
        build(f"name,speed,efficiency,idle_power_w,count,cores\na,1,1,0,2,1\nb,1,1,0,{count},{cores}\n")


def test_embodied_carbon_is_of_a_row_or_given(build):
    """The table's columns hold by row; options hold for all."""
    text = "name,speed,efficiency,idle_power_w,embodied_kg,lifetime_years\na,1,1,0,1200,5\nb,1,1,0,,\n"
    assert [(h.embodied_kg, h.lifetime_years) for h in build(text).hosts] == [(1200.0, 5.0), (0.0, 0.0)]
    given = build(text, embodied_kg=300.0, lifetime_years=3.0)
    assert [(h.embodied_kg, h.lifetime_years) for h in given.hosts] == [(300.0, 3.0)] * 2


UNITS = (
    "name,speed,efficiency,idle_power_w,memory,resources,unit_power\n"
    "a,1e9,1e7,10,4G,gpu:2,gpu:25:300;memory:1:3\n"
    "b,1e9,1e7,10,2G,,\n"
)


def test_power_of_units_is_of_a_row_or_given(build):
    """Two GPUs of 25 W and 4 GiB of 1 W are 54 W; an option is of all hosts that have the units."""
    both = (("gpu", 25.0, 300.0), ("memory_mb", 1.0, 3.0))
    a, b = build(UNITS).hosts
    assert (a.resources, a.unit_power) == ((("memory_mb", 4096), ("gpu", 2)), both)
    assert (b.resources, b.unit_power) == ((("memory_mb", 2048),), ())
    assert (idle_power_w(a), idle_power_w(b)) == (54.0, 0.0)
    a, b = build(UNITS, unit_power="memory:2:5,gpu:10:20").hosts
    assert (idle_power_w(a), idle_power_w(b)) == (2 * 10 + 4 * 2, 2 * 2)
    (host,) = build("name,speed,efficiency\na,1,1\n", memory="1G", resources="gpu:4", unit_power="gpu:1:2").hosts
    assert (host.resources, host.unit_power) == ((("memory_mb", 1024), ("gpu", 4)), (("gpu", 1.0, 2.0),))
    (ann, *_) = build(resources="gpu:4", unit_power="gpu:25:300").hosts
    assert idle_power_w(ann) == 100.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"unit_power": "tpu:1:2"}, "tpu"),
        ({"unit_power": "gpu:1"}, "NAME:IDLE:BUSY"),
        ({"resources": "gpu"}, "NAME:NUMBER"),
        ({"memory": "much"}, "64G"),
        ({"resources": "fpga:1"}, "gpu:25:300"),
    ],
)
def test_units_that_are_wrong_or_have_no_place(build, options, words):
    """In one line; also where an option takes away the units of which a row states the power."""
    with pytest.raises(InputError, match=words) as caught:
        build(UNITS, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("clusters", "expected"),
    [
        (2, [("c1", 3), ("c2", 3)]),
        ("host", [(f"{name}-{k}", 1) for name in ("Ann", "Bob", "Dan") for k in (1, 2)]),
        ("row", [("Ann", 2), ("Bob", 2), ("Dan", 2)]),
        ("site", [("Rome", 2), ("Oslo", 4)]),
        ("year", [("2011", 2), ("2010", 2), ("2009", 2)]),
        ("computer", [("Ax", 4), ("Bx", 2)]),
        ("speed", [("speed-20000000000000", 2), ("speed-40000000000000", 2), ("speed-100000000000000", 2)]),
    ],
)
def test_clusters(build, clusters, expected):
    """By number, host, row, column or speed; together they hold every host once."""
    platform = build(hosts=6, clusters=clusters)
    assert [(c.name, len(c.hosts)) for c in platform.clusters] == expected


def test_cluster_links(build):
    """One value for all clusters or one for each."""
    platform = build(clusters=3, cluster_bandwidth=(1e9,), cluster_latency_s=(0.1, 0.2, 0.3))
    assert [c.bandwidth for c in platform.clusters] == [1e9] * 3
    assert [c.latency_s for c in platform.clusters] == [0.1, 0.2, 0.3]
    with pytest.raises(InputError, match=r"2 .*3"):
        build(clusters=3, cluster_bandwidth=(1e9, 2e9))


def test_master(build):
    """The master computes nothing and draws nothing."""
    platform = build(master=True)
    assert platform.master is not None
    assert len(platform.hosts) == 3
    with pytest.raises(InputError, match="rename"):
        build("name,speed,efficiency\nmaster,1,1\n", master=True)


@pytest.mark.parametrize(
    "options",
    [
        {"hosts": 0},
        {"hosts": 10**7},
        {"cores": 0},
        {"clusters": 0},
        {"seed": -1},
        {"idle_share": 1.5},
        {"idle_share": float("nan")},
        {"off_power_w": -1.0},
        {"speed_levels": (0.0,)},
        {"speed_levels": (float("nan"),)},
        {"speed_uniform": (5.0, 4.0)},
        {"speed_uniform": (1.0, float("inf"))},
        {"idle_power_w": (-1.0, 2.0)},
        {"idle_power_w": (3.0, 2.0)},
        {"cluster_bandwidth": (0.0,)},
        {"cluster_latency_s": (-1.0,)},
        {"speed_levels": (1.0,), "speed_uniform": (1.0, 2.0)},
        {"idle_share": 0.1, "idle_power_w": (1.0, 2.0)},
        {"efficiency": "best"},
        {"name_pattern": "("},
    ],
)
def test_bad_recipes_are_refused(options):
    """Values out of range and options that exclude each other."""
    with pytest.raises(InputError):
        PlatformRecipe(**options)


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"rows": "50-60"}, "no row"),
        ({"rows": "3"}, "no row"),
        ({"rows": "5-2"}, "1-50,60"),
        ({"rows": "x"}, "1-50,60"),
        ({"name_pattern": "zzz"}, "no row"),
        ({"speed_levels": (1.0, 2.0, 3.0, 4.0)}, "need as many rows"),
        ({"idle_power_w": (1e6, 1e6)}, "1e.06 W idle"),
        ({"clusters": "sites"}, "Did you mean 'site'"),
        ({"clusters": "cluster"}, "is allowed"),
        ({"clusters": 4}, "too many"),
        ({"speed_uniform": (10.0, 20.0)}, "scaled"),
    ],
)
def test_recipes_that_do_not_fit_the_table(build, options, part):
    """The message shows what is found and what is allowed."""
    with pytest.raises(InputError, match=part):
        build(**options)


@given(st.integers(1, 40), st.integers(1, 9), st.integers(0, 5))
def test_every_number_of_hosts_and_clusters(tmp_path_factory, hosts, clusters, seed):
    """Hosts are as many as asked for and the clusters differ by one host at most."""
    path = tmp_path_factory.mktemp("t") / "t.csv"
    path.write_text(LEVELS)
    recipe = PlatformRecipe(hosts=hosts, clusters=min(clusters, hosts), seed=seed)
    platform = platform_from_table(read_machine_table(path), recipe)
    sizes = [len(c.hosts) for c in platform.clusters]
    assert len(platform) == hosts == sum(sizes)
    assert max(sizes) - min(sizes) <= 1
    assert len({host.name for host in platform.hosts}) == hosts


def test_parse_ranks():
    """Ranges and single ranks."""
    assert parse_ranks("1-50, 60") == [(1, 50), (60, 60)]
