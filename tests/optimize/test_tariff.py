"""Money by hand (algorithms E3)."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from gridsched.errors import InputError
from gridsched.optimize.tariff import Tariff, depreciation_per_s


def test_profit_of_a_bag_by_hand():
    """Each cost enters once: 300 - 12 - 1.5 x 200 x 0.5 - 16 x 1 - 16 x 0.5 - 16 x 3."""
    tariff = Tariff(
        price=300, energy_cost_per_j=0.5, pue=1.5, overhead=12, wear_per_s=(1, 0.5),
        depreciation_per_s=(1, 0.5),
    )  # fmt: skip
    assert tariff.profit(200, [16, 16], 16, [2, 2]) == 300 - 12 - 150 - 16 - 8 - 48


def test_one_number_is_for_all_types():
    """A scalar holds for every machine type."""
    tariff = Tariff(price=1, wear_per_s=2, depreciation_per_s=3)
    assert tariff.wear(2).tolist() == [2, 2]
    assert tariff.depreciation([4, 5]) == 27


def test_depreciation_is_price_over_life():
    """E3's example: 100 and 50 over 100 s."""
    assert depreciation_per_s((100, 50), (100, 100)) == (1.0, 0.5)
    with pytest.raises(InputError, match="positive lifetimes; found"):
        depreciation_per_s((100, 50), (100, 0))


@pytest.mark.parametrize(
    "fields", [{"price": -1}, {"price": 1, "pue": 0.9}, {"price": float("inf")}, {"prize": 1}]
)
def test_refused(fields):
    """Negative money, a PUE below 1, infinities and unknown names."""
    with pytest.raises(ValidationError):
        Tariff(**fields)


def test_numbers_of_another_system():
    """Numbers by machine type have to fit the machine types."""
    with pytest.raises(InputError, match="wear_per_s has 2 numbers; there are 3 machine types"):
        Tariff(price=1, wear_per_s=(1, 2)).wear(3)
