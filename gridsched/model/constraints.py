"""What jobs ask of the features of nodes: Slurm's ``--constraint``."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from gridsched.errors import InputError

#: What the name of a feature may have beside letters and digits.
FEATURE_MARKS = "_-.:+/@"
#: Longer names, and longer constraints, are refused.
LONGEST_NAME, LONGEST_CONSTRAINT = 100, 1000
_NAME = rf"[A-Za-z0-9{re.escape(FEATURE_MARKS)}]{{1,{LONGEST_NAME}}}"
_TOKEN = re.compile(rf"\s*(?:({_NAME})|([&,|()]))\s*")


def is_feature(name: str) -> bool:
    """Whether a text can be the name of a feature."""
    return re.fullmatch(_NAME, name) is not None


class Constraint:
    """Features that a job needs of each of its nodes.

    Parameters
    ----------
    text : str
        Names of features, joined by ``&`` (or a comma) and ``|``, from left to right, as Slurm has
        it; what is in parentheses counts first.

    Raises
    ------
    InputError
        If it is something else. Counts (``a*2``) and alternatives for all nodes together
        (``[a|b]``) are not understood.

    References
    ----------
    .. [1] SchedMD, ``sbatch`` manual page, option ``--constraint``.

    Examples
    --------
    >>> Constraint("cpu-n&(ib|opa)").met_by({"cpu-n", "opa"})
    True
    """

    def __init__(self, text: str) -> None:
        self.text = text
        if len(text) > LONGEST_CONSTRAINT:
            raise InputError(f"A constraint has {len(text):,} characters; at most {LONGEST_CONSTRAINT:,} are read.")
        self._tokens, at = [], 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise self._wrong(f"{text[at : at + 20]!r} is not understood")
            self._tokens.append(match[1] or match[2])
            at = match.end()
        self.met_by(())  # whatever is wrong shows now

    def met_by(self, features: Collection[str]) -> bool:
        """Whether a node with these features will do."""
        # a stack of (value so far, operator before what comes next), one entry for each open parenthesis
        stack: list[tuple[bool, str]] = [(True, "&")]
        operand_is_next = True
        for token in self._tokens:
            if operand_is_next != (token not in "&,|)"):
                raise self._wrong(f"{token!r} is where {'a name' if operand_is_next else 'an operator'} should be")
            if token == "(":
                stack.append((True, "&"))
            elif token in "&,|":
                stack[-1] = stack[-1][0], token
                operand_is_next = True
            else:
                if token == ")":
                    if len(stack) == 1:
                        raise self._wrong("a parenthesis is closed that was not opened")
                    value = stack.pop()[0]
                else:
                    value = token in features
                before, operator = stack[-1]
                stack[-1] = (before or value if operator == "|" else before and value), "&"
                operand_is_next = False
        if operand_is_next or len(stack) > 1:
            raise self._wrong("it ends too early")
        return stack[0][0]

    def _wrong(self, why: str) -> InputError:
        return InputError(
            f"Constraint {self.text[:60]!r}: {why}. Names of features, '&', '|' and parentheses are allowed, as "
            "'cpu-n&ib'."
        )


def understood(texts: Iterable[str]) -> dict[str, Constraint]:
    """Return the constraints that are understood, by their texts."""
    found: dict[str, Constraint] = {}
    for text in texts:
        try:
            found[text] = Constraint(text)
        except InputError:
            continue
    return found
