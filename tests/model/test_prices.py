"""Prices of energy, and tariffs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsched.errors import InputError
from gridsched.model.prices import PriceSeries
from gridsched.model.tariff import Tariff, depreciation_per_s
from gridsched.workloads.signal_csv import read_prices, with_prices_read

# Prices that vary over the day: which line holds when, means, and what is refused.

INF = np.inf
DAY = PriceSeries((0.0, 10.0, 40.0), (5.0, 6.0, 7.0), (1.0, 3.0, 2.0), (0.0, -1.0, -4.0))


@pytest.mark.parametrize(
    ("now", "period", "expected"),
    [
        (0, 100, (0, 10)),
        (9.5, 100, (0, 10)),
        (10, 100, (1, 40)),
        (40, 100, (2, 100)),
        (100, 100, (0, 110)),
        (1045, 100, (2, 1100)),
        (40, INF, (2, INF)),
        (1e9, INF, (2, INF)),
    ],
)
def test_the_line_of_a_time_and_its_end(now, period, expected):
    """A line holds from its time on; after a period the first one begins again."""
    assert DAY.now_and_next(period, now) == expected


def test_when_lines_begin():
    """Up to and with the end."""
    assert DAY.begins(100.0, 140.0).tolist() == [0, 10, 40, 100, 110, 140]
    assert DAY.begins(100.0, 139.0).tolist() == [0, 10, 40, 100, 110]
    assert DAY.begins(INF, 139.0).tolist() == [0, 10, 40]
    with pytest.raises(InputError, match="1,000,000"):
        DAY.begins(100.0, 1e9)


def test_means_over_a_period():
    """Lines of 10, 30 and 60 s; without a period the last one has no length."""
    assert DAY.mean(100.0) == pytest.approx((6.5, 2.2, -2.7))
    assert DAY.mean(INF) == pytest.approx((5.75, 2.5, -0.75))
    assert PriceSeries((0.0,), (5.0,), (2.0,), (0.0,)).mean(INF) == (5.0, 2.0, 0.0)


def test_the_tariff_of_a_moment():
    """Prices of the line, by backlog; no price is below 0, and all else stays."""
    tariff = Tariff(price=99.0, pue=1.5, prices=DAY, prices_period_s=100.0)
    now, change = tariff.now_and_next(45.0, waiting=1)
    assert (now.price, now.energy_cost_per_j, now.pue, now.prices, change) == (3, 2, 1.5, None, 100)
    assert tariff.now_and_next(45.0, waiting=5)[0].price == 0.0
    assert tariff.mean(waiting=2).price == pytest.approx(6.5 - 2 * 2.7)
    assert list(tariff.lines_from(15.0)) == [0, 1, 2]
    assert list(replace(tariff, prices_period_s=INF).lines_from(15.0)) == [1, 2]
    assert Tariff(price=4.0).now_and_next(7.0) == (Tariff(price=4.0), INF)


@given(st.integers(0, 10**6), st.sampled_from([41.0, 100.0, 86_400.0 / 7, 0.1 + 40.0]))
def test_the_line_and_its_end_agree_with_the_list_of_begins(step, period):
    """At every begin the next line holds, exactly: the same sums are formed everywhere."""
    begins = DAY.begins(period, step * 0.37)
    line, following = DAY.now_and_next(period, float(begins[-1]))
    assert line == (len(begins) - 1) % 3
    assert following > begins[-1]
    assert following in DAY.begins(period, following)


# ---------------------------------------------------------------------- the CSV table


def table(folder: Path, text: str) -> Path:
    """Write a table of prices."""
    path = folder / "prices.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_table_is_read(tmp_path):
    """Energy costs per kWh; empty cells and missing columns have the tariff's values."""
    path = table(tmp_path, "# spring\ntime_s,energy_cost_per_kwh,price\n0,0.36,\n60,,8\n")
    told = with_prices_read(Tariff(price=3.0, energy_cost_per_j=2.0, prices=path))
    assert told.prices == PriceSeries((0, 60), (3.0, 8.0), (pytest.approx(1e-7), 2.0), (0.0, 0.0))
    assert told.prices_period_s == 86_400.0
    surcharge = table(tmp_path, "time_s,price_per_waiting_bag\n0,-2.5\n")
    assert read_prices(surcharge, told).per_waiting_bag == (-2.5,)
    assert with_prices_read(told) is told


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("time_s,price\n", "no prices"),
        ("time_s,price\n5,1\n", "line 2: time_s is '5.0'; the first line begins at 0"),
        ("time_s,price\n0,1\n9,1\n9,2\n", "line 4: time_s is '9.0'; it must be greater"),
        ("time_s,price\n0,-1\n", "line 2: price is '-1'"),
        ("time_s,cost\n0,1\n", "unknown column 'cost'"),
        ("time_s,price\n0,1\n86400,2\n", r"begins at 86400 s.*after 86400 s \(prices_period_s\)"),
    ],
)
def test_bad_tables(tmp_path, text, message):
    """File, line and column; what is allowed, what was found."""
    path = table(tmp_path, text)
    with pytest.raises(InputError, match=message):
        with_prices_read(Tariff(price=3.0, prices=path))


def test_bad_series():
    """Columns of one length, times from 0 on."""
    with pytest.raises(InputError, match="2"):
        PriceSeries((0.0, 1.0), (1.0,), (1.0, 1.0), (0.0, 0.0))
    with pytest.raises(InputError, match="0 s"):
        PriceSeries((1.0,), (1.0,), (1.0,), (0.0,))


# Money by hand (algorithms E3).


def test_profit_of_a_bag_by_hand():
    """Each cost enters once: 300 - 12 - 1.5 x 200 x 0.5 - 16 x 1 - 16 x 0.5 - 16 x 3."""
    tariff = Tariff(
        price=300, energy_cost_per_j=0.5, pue=1.5, overhead=12, wear_per_s=(1, 0.5), depreciation_per_s=(1, 0.5)
    )
    assert tariff.profit(200, [16, 16], 16, [2, 2]) == 300 - 12 - 150 - 16 - 8 - 48


def test_one_number_is_for_all_types():
    """A scalar holds for every machine type."""
    tariff = Tariff(price=1, wear_per_s=2, depreciation_per_s=3)
    assert tariff.wear(2).tolist() == [2, 2]
    assert tariff.depreciation([4, 5]) == 27


def test_depreciation_is_price_over_life():
    """E3's example: 100 and 50 over 100 s."""
    assert depreciation_per_s((100, 50), (100, 100)) == (1.0, 0.5)
    with pytest.raises(InputError, match="lifetimes"):
        depreciation_per_s((100, 50), (100, 0))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"price": -1}, "Tariff: price is -1; it must be at least 0"),
        ({"price": 1, "pue": 0.9}, "Tariff: pue is 0.9; it must be at least 1"),
        ({"price": float("inf")}, "Tariff: price is inf"),
        ({"price": 1, "wear_per_s": (1, -1)}, "wear_per_s is .1, -1.; it must be at least 0"),
        ({"price": 1, "wear_per_s": "much"}, "Tariff: wear_per_s is 'much'"),
    ],
)
def test_refused(fields, message):
    """Negative money, a PUE below 1, infinities and words."""
    with pytest.raises(InputError, match=message):
        Tariff(**fields)


def test_unknown_names_are_refused():
    """A misspelt key is not a key."""
    with pytest.raises(TypeError, match="prize"):
        Tariff(prize=1)


def test_price_by_the_least_energy():
    """Gamma 1.5 on 120 J of the machines, which cost 0.5 x 1.2 money a joule."""
    tariff = Tariff(price=0, energy_cost_per_j=0.5, pue=1.2).priced(1.5, 120.0)
    assert tariff.price == pytest.approx(108.0, rel=1e-15)


def test_numbers_by_type_become_numbers_by_machine():
    """Machines 0 and 2 are of type 1; one number stays one."""
    tariff = Tariff(price=1, wear_per_s=(1, 2), depreciation_per_s=3).for_each([1, 0, 1])
    assert tariff.wear_per_s == (2, 1, 2)
    assert tariff.depreciation([1, 1, 1]) == 9


def test_numbers_of_another_system():
    """Numbers by machine type have to fit the machine types."""
    with pytest.raises(InputError, match=r"wear_per_s.*2.*3"):
        Tariff(price=1, wear_per_s=(1, 2)).wear(3)
