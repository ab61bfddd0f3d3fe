"""Money by hand (algorithms E3)."""

from __future__ import annotations

import pytest

from gridsched.errors import InputError
from gridsched.model.tariff import Tariff, depreciation_per_s


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
    """A misspelt key is no key."""
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
