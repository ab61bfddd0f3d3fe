"""Energy against makespan of divided tasks: the Pareto front of program (5), paper 003."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from gridsched.arrays import Floats
from gridsched.errors import InputError
from gridsched.optimize.relaxation import Infeasible, Relaxation, Solution, least_costs, relaxation, sum_below
from gridsched.optimize.typed_bag import BagPlan, TypedBag

#: The second of two objectives may worsen the first by so much (algorithms, E1).
LEXICOGRAPHIC_SLACK = 1e-9
#: Points whose makespans and energies differ by less, relative to their sizes, are one point.
SAME_POINT = 1e-7
#: A point so little below a chord, relative to the chord's value, lies on it.
ON_CHORD = 1e-9


@dataclass(frozen=True)
class Line:
    """What no schedule is below: ``per_joule E + per_second MS >= least``.

    Attributes
    ----------
    per_joule, per_second : float
        Weights of energy and makespan, not negative.
    least : float
    """

    per_joule: float
    per_second: float
    least: float


@dataclass(frozen=True, eq=False)
class ParetoFront:
    """Schedules of divided tasks of which none is better than another, and proofs of it.

    Attributes
    ----------
    points : tuple of BagPlan
        By rising makespan and falling energy.
    lines : tuple of Line
        Bounds that hold for every schedule, of whole or divided tasks; one for each program
        that was solved.
    complete : bool
        Whether the points are all corners of the front, to the solver's tolerance.
    """

    points: tuple[BagPlan, ...]
    lines: tuple[Line, ...]
    complete: bool = False

    @property
    def makespans_s(self) -> Floats:
        """Makespans of the points [s], rising."""
        return np.array([point.makespan_s for point in self.points])

    @property
    def energies_j(self) -> Floats:
        """Energies of the points [J], falling."""
        return np.array([point.energy_j for point in self.points])

    @property
    def joules_per_second(self) -> Floats:
        """Energy saved for each second more between neighboring points [J/s].

        The weights w at which the optimum of ``E + w MS`` passes from one corner to the next.
        """
        slopes: Floats = -np.diff(self.energies_j) / np.diff(self.makespans_s)
        return slopes

    @property
    def least_makespan_s(self) -> float:
        """Makespan that no schedule is below [s]."""
        return max(line.least / line.per_second for line in self.lines if line.per_joule == 0)

    def least_energy_j(self, makespan_s: float) -> float:
        """Return the energy that no schedule of at most this makespan is below [J].

        Infinite where no schedule is so short, as far as `lines` prove it.

        Parameters
        ----------
        makespan_s : float
            May be infinite.
        """
        if makespan_s < self.least_makespan_s:
            return np.inf
        return max(
            (line.least - line.per_second * makespan_s) / line.per_joule
            if line.per_second
            else line.least / line.per_joule
            for line in self.lines
            if line.per_joule > 0
        )

    def excess(self, makespan_s: float, energy_j: float) -> float:
        """Return how far a schedule is above the front.

        Parameters
        ----------
        makespan_s, energy_j : float
            Of a finished schedule of this bag, over [0, makespan].

        Returns
        -------
        float
            0.05 means: a schedule both 1.05 times shorter and 1.05 times cheaper is not excluded,
            one better than that in both is.
        """
        shrunk = max(line.least / (line.per_joule * energy_j + line.per_second * makespan_s) for line in self.lines)
        return 1.0 / shrunk - 1.0


class FrontSolver:
    """Program (5) of one bag; collects the lines that its solutions prove.

    Attributes
    ----------
    bag : TypedBag
    lines : list of Line
        One for each program solved so far.

    Notes
    -----
    The ends of the front are lexicographic optima, found with a slack in the first objective. The
    slack's price is the slope of the front's last edge there; weights twice as steep, or half,
    have the corner itself as their only optimum, free of the slack.
    """

    def __init__(self, bag: TypedBag) -> None:
        self.bag = bag
        self.base: Relaxation = relaxation(bag)
        self.lines: list[Line] = []
        self._energy = bag.tasks[:, None] * bag.runnable * bag.extra_w

    def weighted(self, per_joule: float, per_second: float) -> BagPlan:
        """Minimize ``per_joule E + per_second MS``."""
        solution = self.base.solve_lengths(per_joule * self._energy, self._cost_of_m(per_joule, per_second))
        self.lines.append(self._line(solution, per_joule, per_second))
        return self._point(solution)

    def shortest(self) -> BagPlan:
        """Least makespan, and of those the least energy."""
        least = self.weighted(0.0, 1.0)
        most_m = least.makespan_s / self.base.scale_s * (1 + LEXICOGRAPHIC_SLACK)
        solution = self.base.solve_lengths(self._energy, self._cost_of_m(1.0, 0.0), most_m)
        slope = solution.last_price / self.base.scale_s
        corner = self._point(solution) if slope == 0 else self.weighted(1.0, 2 * slope)
        missed = corner.makespan_s > least.makespan_s * (1 + LEXICOGRAPHIC_SLACK)
        return self._point(solution) if missed else corner

    def cheapest(self) -> BagPlan:
        """Least energy, and of those the least makespan."""
        least = self.weighted(1.0, 0.0)
        size = abs(least.energy_j) or 1.0
        row = (self._energy / size, self._cost_of_m(1.0, 0.0) / size, least.energy_j / size + LEXICOGRAPHIC_SLACK)
        solution = self.base.solve_lengths(0.0 * self._energy, 1.0, row=row)
        gentle = solution.row_price * self.base.scale_s / size
        corner = self._point(solution) if gentle == 0 else self.weighted(1.0, 0.5 / gentle)
        missed = corner.energy_j > least.energy_j + LEXICOGRAPHIC_SLACK * size
        return self._point(solution) if missed else corner

    @property
    def proven(self) -> ParetoFront:
        """The lines proven so far: no schedule is below them."""
        return ParetoFront((), tuple(self.lines))

    def prove_within(self, makespan_s: float) -> None:
        """Add the line that bounds the energy of schedules of at most this makespan [s] best.

        None is added for an infinite one, nor where the solver finds no schedule so short.
        """
        if not makespan_s < np.inf:
            return
        most_m = makespan_s / self.base.scale_s * (1 + LEXICOGRAPHIC_SLACK)
        try:
            solution = self.base.solve_lengths(self._energy, self._cost_of_m(1.0, 0.0), most_m)
        except Infeasible:
            return
        self.lines.append(self._line(solution, 1.0, solution.last_price / self.base.scale_s))

    def energy_within(self, makespan_s: float, sign: float) -> float:
        """Least (`sign` 1) or most (-1) energy of all machines being on for this time [J]."""
        solution = self.base.solve_lengths(
            sign * self._energy, 0.0, makespan_s / self.base.scale_s * (1 + LEXICOGRAPHIC_SLACK)
        )
        return self.bag.energy_j(self.base.divided_tasks(solution.shares), makespan_s)

    def _cost_of_m(self, per_joule: float, per_second: float) -> float:
        return self.base.scale_s * (per_second + per_joule * self.bag.all_idle_w)

    def _point(self, solution: Solution) -> BagPlan:
        x = self.base.divided_tasks(solution.shares)
        makespan = float(self.bag.finish_s(x).max())
        return BagPlan(self.bag, x, makespan, self.bag.energy_j(x, makespan))

    def _line(self, solution: Solution, per_joule: float, per_second: float) -> Line:
        """Return Lagrange's function at the solver's prices, rounded down.

        The prices of all machine types' rows add up to the cost of a second of makespan.
        """
        bag = self.bag
        prices = solution.machine_prices / self.base.scale_s
        second = per_second + per_joule * bag.all_idle_w
        prices = self.base.prices_of_all(prices, per_joule, total=second)
        costs = least_costs(bag, per_joule, prices / np.maximum(bag.machines, 1))
        return Line(per_joule, per_second, sum_below(bag.tasks * costs))


def weighted_point(bag: TypedBag, energy_weight: float) -> BagPlan:
    """Return the schedule of divided tasks that is best for one weight of the energy.

    Parameters
    ----------
    bag : TypedBag
    energy_weight : float
        Weight alpha from 0 to 1; minimized is ``alpha E / E_min + (1 - alpha) MS / MS_min``, and
        at the ends the other objective second.
    """
    solver = FrontSolver(bag)
    if energy_weight == 0:
        return solver.shortest()
    if energy_weight == 1:
        return solver.cheapest()
    energy = solver.weighted(1.0, 0.0).energy_j or 1.0
    makespan = solver.weighted(0.0, 1.0).makespan_s
    return solver.weighted(energy_weight / energy, (1 - energy_weight) / makespan)


def least_energy(bag: TypedBag) -> BagPlan:
    """Return the schedule of divided tasks with least energy, and of those the shortest.

    Its energy is E_min, the reference of prices ``gamma c E_min`` (algorithms E4).
    """
    return FrontSolver(bag).cheapest()


def feasible_energies(bag: TypedBag, makespan_s: float) -> tuple[float, float]:
    """Return the least and most energy of divided tasks in a given time [J] (paper 003, figure 5).

    Machines are on for the whole time; the last one may finish earlier. Over all times this is
    the feasible region, projected on energy and makespan.

    Parameters
    ----------
    bag : TypedBag
    makespan_s : float

    Raises
    ------
    InputError
        If the tasks cannot be finished in that time.
    """
    solver = FrontSolver(bag)
    try:
        return solver.energy_within(makespan_s, 1.0), solver.energy_within(makespan_s, -1.0)
    except Infeasible as error:
        raise InputError(
            f"The bag cannot be finished in {makespan_s:g} s; it takes at least "
            f"{solver.weighted(0.0, 1.0).makespan_s:g} s."
        ) from error


def exact_front(bag: TypedBag, most_points: int = 1000) -> ParetoFront:
    """Return all corners of the front, by walking its breakpoints.

    Parameters
    ----------
    bag : TypedBag
    most_points : int
        Stop when so many points are known; `ParetoFront.complete` is then False.

    Notes
    -----
    Between two points of the front the sum ``E + w MS`` with the slope w of their chord is
    minimized. Either nothing lies below the chord, so that it is an edge of the front and w a
    breakpoint, or a new corner is found, and two shorter chords take the place of the one [1]_.
    K corners take ``2 K - 3`` programs and those of the ends. The largest rectangle between
    neighbors comes first, so that a front cut short by `most_points` is even.

    References
    ----------
    .. [1] Y. P. Aneja, K. P. K. Nair, "Bicriteria transportation problem", Management Science
       25(1), 1979.
    """
    solver = FrontSolver(bag)
    shortest, cheapest = solver.shortest(), solver.cheapest()
    points = [shortest, cheapest]
    chords: list[tuple[float, int, int]] = []
    _add_chord(chords, points, 0, 1)
    while chords and len(points) < most_points:
        _, left, right = heapq.heappop(chords)
        before, after = points[left], points[right]
        w = (before.energy_j - after.energy_j) / (after.makespan_s - before.makespan_s)
        corner = solver.weighted(1.0, w)
        chord = before.energy_j + w * before.makespan_s
        if corner.energy_j + w * corner.makespan_s >= chord - ON_CHORD * abs(chord):
            continue
        points.append(corner)
        _add_chord(chords, points, left, len(points) - 1)
        _add_chord(chords, points, len(points) - 1, right)
    return ParetoFront(_corners(non_dominated(points)), tuple(solver.lines), not chords)


def _add_chord(chords: list[tuple[float, int, int]], points: list[BagPlan], left: int, right: int) -> None:
    """Put the chord between two points in the heap, unless they are one point."""
    before, after = points[left], points[right]
    seconds = after.makespan_s - before.makespan_s
    joules = before.energy_j - after.energy_j
    if seconds > SAME_POINT * before.makespan_s and joules > SAME_POINT * abs(after.energy_j):
        heapq.heappush(chords, (-seconds * joules, left, right))


def non_dominated(points: Iterable[BagPlan]) -> tuple[BagPlan, ...]:
    """Return the points that no other is as good as in both objectives, by rising makespan.

    Of points that differ by less than `SAME_POINT` the shorter one stays.
    """
    kept: list[BagPlan] = []
    for point in sorted(points, key=lambda each: (each.makespan_s, each.energy_j)):
        last = kept[-1] if kept else None
        if last and last.energy_j - point.energy_j <= SAME_POINT * abs(last.energy_j):
            continue
        if last and point.makespan_s - last.makespan_s <= SAME_POINT * last.makespan_s:
            kept[-1] = point
        else:
            kept.append(point)
    return tuple(kept)


def _corners(points: Sequence[BagPlan]) -> tuple[BagPlan, ...]:
    """Return the corners of the lower convex hull of points by rising makespan."""
    at: Floats = np.array([(p.makespan_s, p.energy_j) for p in points])
    kept: list[int] = []
    for k, (makespan, energy) in enumerate(at):
        while len(kept) > 1:
            (m1, e1), (m2, e2) = at[kept[-2]], at[kept[-1]]
            if (e1 - e2) * (makespan - m2) > (e2 - energy) * (m2 - m1):
                break
            kept.pop()
        kept.append(k)
    return tuple(points[k] for k in kept)
