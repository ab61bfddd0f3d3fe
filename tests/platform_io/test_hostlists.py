"""Host lists that are folded as Slurm writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsched.platform_io.hostlists import expand_hostlist, fold_hostlist, split_hostlist


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["n1", "n2", "n3", "n7"], "n[1-3,7]"),
        (["node08", "node10", "node09"], "node[08-10]"),
        (["n0", "n1", "n10"], "n[0-1,10]"),
        (["login", "a1", "b"], "login,a1,b"),
        (["r1n01", "r1n02", "r2n01"], "r1n[01-02],r2n01"),
        (["1", "2"], "[1-2]"),
        (["a9.x", "a10.x"], "a[9-10].x"),
        (["a", "1a", "2a"], "a,[1-2]a"),
    ],
)
def test_by_hand(names, text):
    """Neighbors are a range; padded numbers and those of as many digits are one group."""
    assert fold_hostlist(names) == text


name = st.from_regex(r"[a-c]{0,2}[0-9]{0,3}[a-b-]{0,2}[0-9]{0,4}", fullmatch=True).filter(bool)


@given(st.lists(name, min_size=1, max_size=40))
def test_it_is_undone_by_expanding(names):
    """The same names, each once; the items of the list expand to them one by one."""
    text = fold_hostlist(names)
    assert sorted(expand_hostlist(text)) == sorted(set(names))
    assert [each for item in split_hostlist(text) for each in expand_hostlist(item)] == expand_hostlist(text)
