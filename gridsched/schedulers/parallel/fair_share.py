"""Slurm's fair share: who has used how much of late, and what that is worth in priority."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.errors import InputError
from gridsched.model.attributes import Attribute
from gridsched.policy.state import State

#: Between account and user in the name of an association.
SLASH = "/"


def attribute_of(state: State, name: str, owner: str) -> Attribute:
    """Return the log's data of the jobs so far; `InputError` if it has none."""
    attribute = state.tasks.attributes.get(name)
    if attribute is None:
        raise InputError(f"{owner} uses the {name} of each job, and {state.tasks.name} has none.")
    return attribute


def classic_factors(usage: Floats, share: Floats, dampening: float) -> Floats:
    """Return 2^(-(U / S) / d) of users without accounts [1]_, shape (users,).

    Parameters
    ----------
    usage : ndarray of float64
        What each has used, in any unit.
    share : ndarray of float64
        Part of all shares that each has.
    dampening : float

    References
    ----------
    .. [1] SchedMD, "Classic fairshare algorithm", https://slurm.schedmd.com/classic_fair_share.html
    """
    used = usage / max(usage.sum(), np.finfo(float).tiny)
    return np.asarray(np.exp2(-used / share / dampening))


@dataclass
class Association:
    """A user or an account, with what belongs to it.

    Attributes
    ----------
    name : str
    shares : int
    place : int
        Of a user, in arrays of associations; -1 of an account.
    children : list of Association
        Of an account.
    usage : float
        What it has used, in any unit; of an account the sum.
    """

    name: str
    shares: int
    place: int = -1
    children: list[Association] = field(default_factory=list)
    usage: float = 0.0

    @property
    def level_shares(self) -> int:
        """Sum of the shares of its children."""
        return sum(each.shares for each in self.children)


def classic_factors_of_tree(root: Association, count: int, dampening: float) -> Floats:
    """Return the classic fair-share factors of users in accounts, by their places, shape (count,).

    Parameters
    ----------
    root : Association
    count : int
        Number of users.
    dampening : float

    Notes
    -----
    S is the product of the parts of shares from the root on, U of what is right under the root its
    part of all usage; below, with U_p of its account, U = u + (U_p - u) s, where u is its part of
    all usage and s its part of the account's shares.
    """
    factors, total = np.ones(count), root.usage or 1.0

    def visit(parent: Association, share: float, used: float | None) -> None:
        for each in parent.children:
            part = each.shares / (parent.level_shares or 1)
            own = each.usage / total
            effective = own if used is None else own + (used - own) * part
            if each.place < 0:
                visit(each, share * part, effective)
            elif share * part > 0:
                factors[each.place] = 2.0 ** (-effective / (share * part) / dampening)
            else:
                factors[each.place] = 0.0

    visit(root, 1.0, None)
    return factors


def fair_tree_factors(root: Association, count: int) -> Floats:
    """Return the factors of users by Fair Tree [1]_, by their places, shape (count,).

    Parameters
    ----------
    root : Association
    count : int
        Number of users.

    Notes
    -----
    Siblings are ranked by part of shares over part of usage at their level, users before accounts
    where these are equal; the accounts' users follow at the place of the account. Accounts that are
    equal are ranked as one, and equal users have one rank. The factor of the user on rank k of n is
    (n - k + 1) / n.

    References
    ----------
    .. [1] SchedMD, "Fair Tree fairshare algorithm", https://slurm.schedmd.com/fair_tree.html
    """
    factors = np.ones(count)
    rank = left = count

    def visit(families: Sequence[Association], are_tied: bool) -> None:
        nonlocal rank, left
        rows = [(_level_share(each, parent), each) for parent in families for each in parent.children]
        rows.sort(key=lambda row: (-row[0], row[1].place < 0))
        last, k = math.nan, 0
        while k < len(rows):
            share, each = rows[k]
            is_tied = share == last or (are_tied and k == 0)
            last = share
            if each.place >= 0:
                if not is_tied:
                    rank = left
                factors[each.place] = rank / count
                left -= 1
                k += 1
                continue
            equal = k
            while equal < len(rows) and rows[equal][0] == share:
                equal += 1
            visit([row[1] for row in rows[k:equal]], is_tied)
            k = equal

    visit([root], False)
    return factors


def _level_share(each: Association, parent: Association) -> float:
    """Return part of shares over part of usage among siblings; infinite where nothing is used."""
    if not each.shares:
        return 0.0
    if not each.usage:
        return math.inf
    return (each.shares / parent.level_shares) / (each.usage / parent.usage)


class FairShare:
    """Usage of users that decays, and the factors that follow from it.

    Parameters
    ----------
    half_life_s : float
        Time in which usage counts half [s]; 0: it counts for ever.
    dampening : float
        Of the classic algorithm.
    is_tree : bool
        Whether Fair Tree ranks users, else the classic formula.
    by_account : bool
        Whether users belong to the accounts of their jobs; else all are right under the root.
    shares : mapping of str to int
        Of users by name, or of one in one account as ``account/user``; ``/user`` is under the root.
    account_shares : mapping of str to int
    charges_ends : bool
        Whether users are charged for all that their jobs have, else when priorities are computed again, for jobs
        that run then.
    """

    def __init__(
        self,
        half_life_s: float,
        dampening: float,
        is_tree: bool,
        by_account: bool,
        shares: Mapping[str, int],
        account_shares: Mapping[str, int],
        charges_ends: bool = True,
    ) -> None:
        self._charges_ends = charges_ends
        self._half_life_s, self._dampening, self._is_tree = half_life_s, dampening, is_tree
        self._by_account, self._shares, self._account_shares = by_account, shares, account_shares
        #: places of users in accounts; the first is that of jobs without a known user
        self._places: dict[tuple[str, str], int] = {("", ""): 0}
        #: of each user, and the nodes (or cores) that each has now
        self._usage: Floats = np.zeros(1)
        self._nodes: Floats = np.zeros(1)
        #: jobs that run, where they are charged later: since when that is due [s], and their nodes (or cores)
        self._held: dict[int, tuple[float, float]] = {}
        #: the usage that the factors follow
        self._settled: Floats = np.zeros(1)
        #: place of the user of each task
        self.user = np.zeros(0, dtype=np.int64)
        self._last_s = 0.0
        self._known: tuple[str, ...] = ()
        self._accounts: tuple[str, ...] = ()
        if by_account:
            for name in shares:
                account, slash, user = name.rpartition(SLASH)
                if slash:
                    self._place(account, user)

    def _place(self, account: str, user: str) -> int:
        return self._places.setdefault((account, user), len(self._places))

    def observe(self, state: State, owner: str, computed_s: float) -> None:
        """Charge users for the nodes that their jobs had since the last look.

        Parameters
        ----------
        state : State
        owner : str
            Which parameter asks for users, for messages.
        computed_s : float
            When priorities were computed again for the last time, maybe now [s]; jobs that ran then have been charged
            until then.
        """
        users = attribute_of(state, "user", owner)
        self._known = users.known
        if self._by_account:
            accounts = attribute_of(state, "account", owner)
            self._accounts = accounts.known
            first = len(self.user)
            pairs = zip(accounts.codes[first:].tolist(), users.codes[first:].tolist(), strict=True)
            new = [self._place(_named(accounts, a), _named(users, u)) for a, u in pairs]
            self.user = np.concatenate([self.user, np.array(new, dtype=np.int64)])
        else:
            for name in users.names:
                self._place("", name)
            self.user = users.codes + 1
        n_users = len(self._places)
        lasts_s, self._last_s = state.now - self._last_s, state.now
        charged = self._nodes * lasts_s
        if self._half_life_s:
            kept = 0.5 ** (lasts_s / self._half_life_s)
            self._usage = self._usage * kept
            charged = self._nodes * (1.0 - kept) * self._half_life_s / math.log(2)
        running = state.running
        if not self._charges_ends:
            charged = self._charge_held(set(running["task"].tolist()), computed_s, state.now, n_users)
        usage = np.zeros(n_users)
        usage[: len(self._usage)] = self._usage
        usage[: len(charged)] += charged
        self._usage = usage
        self._nodes = np.bincount(self.user[running["task"]], running["width"], n_users).astype(np.float64)

    def _charge_held(self, running: set[int], computed_s: float, now: float, n_users: int) -> Floats:
        """Return what users are charged for jobs that ran when priorities were computed again."""
        charged = np.zeros(n_users)
        for task, (since_s, width) in self._held.items():
            if since_s < computed_s and (computed_s < now or task in running):
                charged[self.user[task]] += width * (computed_s - since_s)
                self._held[task] = computed_s, width
        self._held = {task: held for task, held in self._held.items() if task in running}
        return charged

    def started(self, tasks: Integers, width: Integers) -> None:
        """Let users have the nodes of their jobs from now on."""
        np.add.at(self._nodes, self.user[tasks], width)
        if not self._charges_ends:
            self._held |= {task: (self._last_s, float(each)) for task, each in zip(tasks.tolist(), width, strict=True)}

    def settle(self) -> None:
        """Let factors follow the usage until now."""
        self._settled = self._usage

    def _usage_of(self, place: int) -> float:
        return float(self._settled[place]) if place < len(self._settled) else 0.0

    def factors(self) -> Floats:
        """Return the factor of each user by place, first of jobs without a known user.

        They follow the usage when it was last settled.
        """
        if not self._by_account and not self._is_tree:
            everyone = sum(self._shares.get(name, 1) for name in {*self._known, *self._shares})
            share = np.array([self._shares.get(user, 1) for _, user in self._places]) / everyone
            usage = np.array([self._usage_of(place) for place in self._places.values()])
            return classic_factors(usage, share, self._dampening)
        root, places = self._tree(), len(self._places)
        if self._is_tree:
            # of the log's unknown user there is none, unless it has jobs
            placed = [place for _, place in self._leaves(root)]
            factors = np.ones(places)
            ranked = fair_tree_factors(_renumbered(root, placed), len(placed))
            factors[placed] = ranked
            return factors
        return classic_factors_of_tree(root, places, self._dampening)

    def _tree(self) -> Association:
        """Return all users that are known, in their accounts."""
        root = Association("root", 1)
        names: Iterable[tuple[str, str]] = self._places
        if not self._by_account:
            names = dict.fromkeys([*names, *(("", name) for name in (*self._known, *self._shares) if name)])
        accounts = {name: Association(name, self._account_shares.get(name, 1)) for name in self._account_names()}
        extra = len(self._places)
        for account, user in names:
            if not user and ("" not in self._known or account):
                continue
            place = self._places.get((account, user))
            if place is None:
                place, extra = extra, extra + 1
            shares = self._shares.get(f"{account}{SLASH}{user}", self._shares.get(user, 1))
            usage = self._usage_of(place)
            parent = accounts.get(account, root) if account else root
            parent.children.append(Association(user, shares, place, usage=usage))
            parent.usage += usage
            if parent is not root:
                root.usage += usage
        root.children += accounts.values()
        return root

    def _account_names(self) -> Iterable[str]:
        if not self._by_account:
            return ()
        named = (account for account, _ in self._places)
        return dict.fromkeys(name for name in (*self._accounts, *named, *self._account_shares) if name)

    @staticmethod
    def _leaves(root: Association) -> list[tuple[Association, int]]:
        found, rest = [], [root]
        while rest:
            each = rest.pop()
            rest += each.children
            if each.place >= 0:
                found.append((each, each.place))
        return found


def _named(attribute: Attribute, code: int) -> str:
    return attribute.names[code] if code >= 0 else ""


def _renumbered(root: Association, places: Sequence[int]) -> Association:
    """Return the tree with places that are those of `places`."""
    place_of = {place: k for k, place in enumerate(places)}

    def copied(each: Association) -> Association:
        children = [copied(child) for child in each.children]
        return Association(each.name, each.shares, place_of.get(each.place, -1), children, each.usage)

    return copied(root)
