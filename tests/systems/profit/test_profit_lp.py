"""The profit program: E5's table by hand, the program as printed, every schedule, and laws."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from typed_bags import changed, every_schedule, exact_idle_w, example, random_bag

from gridsched.errors import InputError
from gridsched.model.tariff import Tariff
from gridsched.optimize.pareto_front import exact_front, least_energy
from gridsched.optimize.recovery import earnings, recover
from gridsched.optimize.typed_bag import typed_bag
from gridsched.systems.profit.profit_lp import _Programme, most_profit, relative_decrease

# Typed bags and their bounds.
# Bags by type: their formulas by hand, and what is refused.

SEEDS = st.integers(0, 2**32 - 1)
#: Prices in units of the least energy's cost.
GAMMAS = st.sampled_from([0.3, 0.9, 0.99, 1.0, 1.01, 1.2, 1.5, 4.0])


def priced(bag, gamma, **fields):
    """A tariff with price ``gamma c E_min`` (E4)."""
    cost = fields.pop("energy_cost_per_j", 1.0)
    return Tariff(price=gamma * cost * least_energy(bag).energy_j, energy_cost_per_j=cost, **fields)


# ---------------------------------------------------------------------- by hand (E5)


@pytest.mark.parametrize(
    ("price", "cap", "idle", "makespan", "x", "profit_rate"),
    [
        (180, np.inf, 0.0, 48, (0, 12), 1.25),
        (300, np.inf, 0.0, 16, (8, 4), 6.25),
        (300, 10, 0.0, 19.2, (7.2, 4.8), 5.625),
        (300, np.inf, (1, 0.25), 16, (8, 4), 6.25),
    ],
)
def test_worked_examples(price, cap, idle, makespan, x, profit_rate):
    """The table of E5."""
    plan = most_profit(example(idle_w=idle), Tariff(price=price), power_cap_w=cap)
    assert plan.runs
    assert plan.makespan_s == pytest.approx(makespan, rel=1e-12)
    assert plan.rate_per_s == pytest.approx(1 / makespan, rel=1e-12)
    assert plan.x[0].tolist() == pytest.approx(list(x), rel=1e-12, abs=1e-12)
    assert plan.profit_rate == pytest.approx(profit_rate, rel=1e-12)
    assert plan.bound == pytest.approx(profit_rate, rel=1e-12)
    assert plan.mean_power_w <= cap * (1 + 1e-12)


def test_do_not_run():
    """Price 108 for a bag that costs at least 120: no makespan, no profit, and a line reports this."""
    plan = most_profit(example(), Tariff(price=108))
    assert (plan.runs, plan.rate_per_s, plan.makespan_s) == (False, 0.0, np.inf)
    assert (plan.profit_rate, plan.bound) == (0.0, 0.0)
    assert not plan.x.any()
    assert plan.energy_j == np.inf
    assert plan.describe().startswith("Do not run")


def test_do_not_run_costs_the_idle_power():
    """Machines that stand still lose their idle power and their depreciation."""
    plan = most_profit(
        example(idle_w=(1, 0.25)), Tariff(price=1, energy_cost_per_j=2, pue=1.5, depreciation_per_s=(1, 0.5))
    )
    assert not plan.runs
    assert plan.profit_rate == pytest.approx(-2 * 1.5 * 1.25 - 1.5)
    assert plan.bound == pytest.approx(plan.profit_rate)
    assert plan.mean_power_w == pytest.approx(1.5 * 1.25)


def test_extensions_by_hand():
    """E5: overhead 12 and wear (1, 0.5) leave 4; depreciation of 1.5 leaves 2.5."""
    worn = Tariff(price=300, overhead=12, wear_per_s=(1, 0.5))
    assert most_profit(example(), worn).profit_rate == pytest.approx(4, rel=1e-12)
    old = replace(worn, depreciation_per_s=(1.0, 0.5))
    assert most_profit(example(), old).profit_rate == pytest.approx(2.5, rel=1e-12)


def test_pue_scales_power_and_counts_under_the_cap():
    """PUE 2 with half the energy cost changes nothing but the drawn power."""
    half = Tariff(price=300, energy_cost_per_j=0.5, pue=2)
    plan = most_profit(example(), half, power_cap_w=20)
    assert plan.profit_rate == pytest.approx(5.625, rel=1e-12)
    assert plan.mean_power_w == pytest.approx(20, rel=1e-12)
    assert plan.energy_j == pytest.approx(192, rel=1e-12)


def test_a_promise_is_kept_at_the_least_loss():
    """108 for 120 J, a bag each 100 s at least: lose 12 per 100 s, on the cheap machine."""
    plan = most_profit(example(), Tariff(price=108), least_rate_per_s=0.01)
    assert plan.makespan_s == pytest.approx(100, rel=1e-12)
    assert plan.x[0].tolist() == pytest.approx([0, 12])
    assert plan.profit_rate == pytest.approx(-0.12, rel=1e-12)
    assert plan.bound == pytest.approx(-0.12, rel=1e-12)


def test_very_small_promises_are_kept_exactly():
    """One bag in 10^12 s lies far below the solver's tolerance, and is found all the same."""
    plan = most_profit(example(), Tariff(price=108), least_rate_per_s=1e-12)
    assert plan.makespan_s == pytest.approx(1e12, rel=1e-9)
    assert plan.profit_rate == pytest.approx(-12e-12, rel=1e-9)


def test_worths_by_hand():
    """p = 300: a bag's 300 are worth 25 a task, 12.5 and 6.25 a second, less 10 and 2.5 W."""
    plan = most_profit(example(), Tariff(price=300))
    assert plan.machine_worth.tolist() == pytest.approx([2.5, 3.75])
    assert plan.task_worth.tolist() == pytest.approx([25 / 16])
    assert plan.watt_worth == 0
    capped = most_profit(example(), Tariff(price=300), power_cap_w=10)
    # 0.25 a watt: 10 W x 1.25 leave nothing of 12.5 of the first machine's second
    assert capped.watt_worth == pytest.approx(0.25)
    assert capped.machine_worth.tolist() == pytest.approx([0, 3.125], abs=1e-9)


def test_worth_of_a_machine_type_that_has_no_machine_yet():
    """The second type's first machine adds 3.75 to 2.5, as in the table of E5."""
    plan = most_profit(example(machines=(1, 0)), Tariff(price=300))
    assert plan.profit_rate == pytest.approx(2.5)
    assert plan.machine_worth.tolist() == pytest.approx([2.5, 3.75])


def test_relative_decrease():
    """(UB - LB) / UB, only where the upper bound is positive."""
    assert relative_decrease(5.625, 5.5) == pytest.approx(0.125 / 5.625)
    assert np.isnan(relative_decrease(0.0, -1.0))
    assert np.isnan(relative_decrease(-1.0, -2.0))


@pytest.mark.parametrize(
    ("cap", "rate", "idle", "message"),
    [
        (1, 0, (1, 0.25), "cap is 1 W, but the idle machines alone draw 1.25 W"),
        (np.inf, 0.1, 0, "promised rate is 0.1 bags a second; the machines finish at most 0.0625"),
        (5, 0.05, 0, "finish at most 0.03125 under 5 W"),
        (0, 0, 0, "power cap must be positive"),
        (np.inf, -1, 0, "promised rate from 0 on"),
    ],
)
def test_refused(cap, rate, idle, message):
    """Constraints that exclude each other are named with what is possible."""
    with pytest.raises(InputError, match=message):
        most_profit(example(idle_w=idle), Tariff(price=300), power_cap_w=cap, least_rate_per_s=rate)


# ---------------------------------------------------------------------- oracles


def as_printed(bag, tariff, cap, rate):
    """Program (10) as the paper prints it, in its own variables, solved by interior points."""
    shape = bag.etc.shape
    n, (n_tasks, n_machines) = bag.etc.size, shape
    busy = bag.runnable
    watts = tariff.pue * busy * bag.extra_w
    idle = tariff.pue * bag.all_idle_w
    profit = np.append(
        -(tariff.energy_cost_per_j * watts + busy * tariff.wear(n_machines)).ravel(), tariff.price - tariff.overhead
    )
    rows = np.zeros((n_tasks, n + 1))
    columns = np.zeros((n_machines + 1, n + 1))
    for i in range(n_tasks):
        rows[i, i * n_machines : (i + 1) * n_machines] = 1
        rows[i, n] = -bag.tasks[i]
    for j in range(n_machines):
        columns[j, j:n:n_machines] = busy[:, j] / max(bag.machines[j], 1)
    columns[n_machines, :n] = watts.ravel() / 1000
    right = np.append(np.ones(n_machines), min((cap - idle) / 1000, 1e12))
    upper = np.where(bag.usable, np.inf, 0).ravel()
    bounds = [*((0, most) for most in upper), (rate, None)]
    answer = linprog(
        -profit, A_ub=columns, b_ub=right, A_eq=rows, b_eq=np.zeros(n_tasks), bounds=bounds, method="highs-ipm"
    )
    assert answer.status == 0
    constant = tariff.energy_cost_per_j * idle + tariff.depreciation(bag.machines)
    return -answer.fun - constant


@settings(max_examples=30, deadline=None)
@given(SEEDS, GAMMAS, st.booleans())
def test_the_programme_as_printed(seed, gamma, capped):
    """Another formulation and another algorithm find the same optimum."""
    bag = random_bag(seed)
    rng = np.random.default_rng(seed)
    tariff = priced(
        bag,
        gamma,
        pue=rng.uniform(1, 2),
        overhead=rng.uniform(0, 10),
        wear_per_s=tuple(rng.uniform(0, 3, len(bag.machines))),
        depreciation_per_s=0.5,
        energy_cost_per_j=rng.uniform(0.5, 2),
    )
    cap = tariff.pue * (bag.all_idle_w + rng.uniform(1, 400)) if capped else np.inf
    plan = most_profit(bag, tariff, power_cap_w=cap)
    size = abs(plan.bound) + tariff.energy_cost_per_j * plan.mean_power_w + 1
    expected = as_printed(bag, tariff, cap, 0.0)
    assert plan.bound == pytest.approx(expected, abs=2e-6 * size)
    assert plan.profit_rate == pytest.approx(plan.bound, abs=1e-7 * size)
    assert plan.profit_rate <= plan.bound
    assert plan.mean_power_w <= cap * (1 + 1e-12)


def exact_bound_holds(plan, value):
    """A float bound is at least an exactly calculated profit rate."""
    return Fraction(plan.bound) >= value


@settings(max_examples=20, deadline=None)
@given(SEEDS, GAMMAS)
def test_no_schedule_of_whole_tasks_earns_more(seed, gamma):
    """Every schedule of a few tasks, in exact arithmetic, without a tolerance."""
    bag = random_bag(seed, most_tasks=2, most_machines=2, types=2)
    assume(bag.tasks.sum() <= 4)
    tariff = priced(bag, gamma, wear_per_s=0.25)
    plan = most_profit(bag, tariff)
    price, wear = Fraction(tariff.price), Fraction(0.25)
    for makespan, above_idle, busy in every_schedule(bag):
        profit = price - above_idle - wear * sum(busy)
        assert exact_bound_holds(plan, profit / makespan - exact_idle_w(bag))


@settings(max_examples=30, deadline=None)
@given(SEEDS, GAMMAS)
def test_the_bound_does_not_trust_the_solver(seed, gamma):
    """The plan's own divided tasks, made feasible in exact arithmetic, stay below the bound."""
    bag = random_bag(seed)
    tariff = priced(bag, gamma)
    plan = most_profit(bag, tariff)
    assume(plan.runs)
    above = Fraction(0)
    finish = Fraction(0)
    busy = [Fraction(0)] * len(bag.machines)
    for i, row in enumerate(plan.x):
        parts = [Fraction(float(part)) for part in row]
        scale = int(bag.tasks[i]) / sum(parts) if sum(parts) else Fraction(0)
        for j, part in enumerate(parts):
            if part:
                seconds = part * scale * Fraction(float(bag.etc[i, j]))
                busy[j] += seconds
                extra = Fraction(float(bag.apc[i, j])) - Fraction(float(bag.idle_w[j]))
                above += seconds * extra
    finish = max(busy[j] / int(m) for j, m in enumerate(bag.machines) if m)
    rate = 1 / max(finish, Fraction(plan.makespan_s))
    profit = rate * (Fraction(tariff.price) - above) - exact_idle_w(bag)
    assert exact_bound_holds(plan, profit)
    assert float(profit) == pytest.approx(plan.profit_rate, rel=1e-9, abs=1e-9)


def test_a_machine_that_is_all_but_useless_does_not_loosen_the_bound():
    """12 tasks in 24 s for 240 J earn 2.5 a second; 1e15 s for nothing add next to nothing."""
    bag = typed_bag([[2, 1e15]], [[10, 0]], [12], [1, 1])
    plan = most_profit(bag, Tariff(price=300))
    assert (plan.profit_rate, plan.bound) == pytest.approx((2.5, 2.5), rel=1e-9)


def test_a_rate_that_the_cap_does_not_bear_is_lowered():
    """120 J on the frugal machine under 2 W take 60 s, whatever a solver's tolerance lets pass."""
    programme = _Programme(example(), Tariff(price=300), 2.0, 0.0)
    solution, base = programme.solve()
    plan = programme.plan(replace(solution, last=1.001 * solution.last), base)
    assert (plan.makespan_s, plan.mean_power_w) == pytest.approx((60.0, 2.0), rel=1e-12)


# ---------------------------------------------------------------------- laws


@settings(max_examples=30, deadline=None)
@given(SEEDS, GAMMAS, st.booleans(), st.booleans())
def test_the_upper_bound_is_above_the_lower(seed, gamma, capped, promised):
    """Rounding and LPT never earn more than the bound, under a cap and a promise, too."""
    bag = random_bag(seed)
    tariff = priced(bag, gamma, wear_per_s=0.1, depreciation_per_s=0.2, overhead=1)
    rng = np.random.default_rng(seed)
    under = {"power_cap_w": bag.all_idle_w + rng.uniform(1, 400) if capped else np.inf}
    under["least_rate_per_s"] = 0.0
    if promised:
        fastest = most_profit(bag, Tariff(price=1e30), power_cap_w=under["power_cap_w"])
        under["least_rate_per_s"] = fastest.rate_per_s * rng.uniform(0.1, 0.9)
    plan = most_profit(bag, tariff, **under)
    assume(plan.runs)
    earned = earnings(recover(bag, plan.x), tariff, **under)
    assert earned.mean_power_w <= under["power_cap_w"] * (1 + 1e-12)
    if earned.keeps_rate:
        size = abs(plan.bound) + earned.mean_power_w
        assert earned.profit_rate <= plan.bound + 1e-12 * size


@settings(max_examples=20, deadline=None)
@given(SEEDS, GAMMAS, st.booleans())
def test_best_point_of_the_front(seed, gamma, idle):
    """Equal to the best corner of the front where the price covers E_min; never below it."""
    bag = random_bag(seed, idle=idle)
    front = exact_front(bag)
    tariff = Tariff(price=gamma * front.energies_j[-1])
    best = float(((tariff.price - front.energies_j) / front.makespans_s).max())
    plan = most_profit(bag, tariff)
    size = tariff.price / front.makespans_s[0] + bag.all_idle_w
    assert plan.bound >= best - 1e-12 * size
    if gamma >= 1:
        assert plan.profit_rate == pytest.approx(best, rel=1e-6, abs=1e-9 * size)


@settings(max_examples=20, deadline=None)
@given(SEEDS, GAMMAS, st.sampled_from([2, 7, 1000]))
def test_scaling_laws(seed, gamma, k):
    """What changes with k times the tasks, the times, the powers, the machines, the money."""
    bag = random_bag(seed)
    tariff = priced(bag, gamma)
    base = most_profit(bag, tariff).bound
    size = abs(base) + bag.all_idle_w + tariff.price / exact_front(bag, 2).makespans_s[0]

    def same(other_bag, expected=base, **money):
        plan = most_profit(other_bag, replace(tariff, **money))
        assert plan.bound == pytest.approx(expected, abs=1e-8 * size * max(1, expected / (base or 1)))

    more = k * tariff.price
    same(changed(bag, tasks=bag.tasks * k), price=more)
    same(changed(bag, etc=bag.etc * k), price=more)
    same(changed(bag, apc=bag.apc * k, idle_w=bag.idle_w * k), energy_cost_per_j=1 / k)
    same(bag, k * base, price=more, energy_cost_per_j=k)
    both = changed(bag, tasks=bag.tasks * k, machines=bag.machines * k)
    same(both, k * base, price=more)


@settings(max_examples=20, deadline=None)
@given(SEEDS, GAMMAS)
def test_worths_bound_what_one_more_brings(seed, gamma):
    """The optimum is concave in machines and watts: a worth is never below what one more adds."""
    bag = random_bag(seed)
    tariff = priced(bag, gamma, depreciation_per_s=0.1)
    cap = bag.all_idle_w + 100.0
    plan = most_profit(bag, tariff, power_cap_w=cap)
    size = abs(plan.bound) + cap
    watt = most_profit(bag, tariff, power_cap_w=cap + 1)
    assert watt.profit_rate <= plan.bound + plan.watt_worth + 1e-9 * size
    for j in range(len(bag.machines)):
        machines = bag.machines.copy()
        machines[j] += 1
        if bag.all_idle_w + bag.idle_w[j] < cap:
            more = most_profit(changed(bag, machines=machines), tariff, power_cap_w=cap)
            assert more.profit_rate <= plan.bound + plan.machine_worth[j] + 1e-9 * size


def test_worth_of_a_task_is_the_difference_it_makes():
    """Twelve million tasks, one less: 25 / 16 for a bag a million times larger."""
    many, tariff = example(tasks=12_000_000), Tariff(price=300e6)
    plan = most_profit(many, tariff)
    fewer = most_profit(example(tasks=11_999_000), tariff)
    gained = (fewer.profit_rate - plan.profit_rate) / 1000
    assert gained == pytest.approx(plan.task_worth[0], rel=1e-3)
    assert plan.task_worth[0] == pytest.approx(25 / 16e6, rel=1e-9)


def test_extreme_numbers():
    """10^12 tasks of a microsecond beside one of ten years; a machine 10^12 times slower."""
    bag = typed_bag([[1e-6, 1e6], [3e8, np.inf]], [[100, 1e-3], [200, 1]], [10**12, 1], [1000, 1], [5, 0])
    plan = most_profit(bag, Tariff(price=1e13))
    assert plan.runs
    assert plan.profit_rate <= plan.bound
    assert plan.profit_rate == pytest.approx(plan.bound, rel=1e-6)


@pytest.mark.parametrize("idle", [1.0, 1.1, 0.7])
def test_a_cap_equal_to_the_idle_power_leaves_nothing_to_run_with(idle):
    """Every task draws more than an idle machine: do not run, and no promise can be kept."""
    bag = example(machines=(3, 2), idle_w=(idle, idle / 4))
    cap = 3 * idle + 2 * (idle / 4)
    tariff = Tariff(price=1e6, pue=1.0)
    plan = most_profit(bag, tariff, power_cap_w=cap)
    assert not plan.runs
    assert plan.profit_rate == pytest.approx(-cap)
    assert plan.profit_rate <= plan.bound <= -cap * (1 - 1e-9)
    for rate in (1e-12, 1.0):
        with pytest.raises(InputError, match=f"{cap:g} W"):
            most_profit(bag, tariff, power_cap_w=cap, least_rate_per_s=rate)
    with pytest.raises(InputError, match="idle"):
        most_profit(bag, tariff, power_cap_w=cap * (1 - 1e-12))


def test_a_plan_that_does_not_run_is_not_rounded():
    """Nothing is placed: reported, not invented."""
    plan = most_profit(example(), Tariff(price=108))
    with pytest.raises(InputError, match=r"12.*0"):
        recover(example(), plan.x)


def test_the_capped_row_of_e5():
    """(7.2, 4.8) becomes (7, 5): 14 s and 20 s, 190 J, profit rate 5.5, mean power 9.5 W."""
    bag, tariff = example(), Tariff(price=300)
    plan = most_profit(bag, tariff, power_cap_w=10)
    found = recover(bag, plan.x)
    assert found.x.tolist() == [[7, 5]]
    assert [m.loads_s.tolist() for m in found.machines] == [[14], [20]]
    earned = earnings(found, tariff, power_cap_w=10)
    assert (earned.makespan_s, earned.energy_j) == (20, 190)
    assert (earned.profit_rate, earned.mean_power_w) == (5.5, 9.5)
    assert earned.profit_rate <= plan.bound
