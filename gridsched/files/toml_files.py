"""Read TOML that nobody vouches for."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from gridsched.errors import InputError

#: A key of more parts is refused before it is parsed, which would take the square of their number.
MAX_PARTS = 100
_LONG_KEY = re.compile(
    rf"^[ \t]*\[{{0,2}}(?:[^\s.,\[\]=#]+[ \t]*\.[ \t]*){{{MAX_PARTS}}}", re.MULTILINE
)


def parse_toml(text: str, path: str) -> dict[str, Any]:
    """Return what a TOML file says.

    Parameters
    ----------
    text : str
    path : str
        The file, for messages.

    Raises
    ------
    InputError
        If it is no TOML, nests too deeply, or has a number or key of enormous length.
    """
    key = _LONG_KEY.search(text)
    if key:
        line = text.count("\n", 0, key.start()) + 1
        raise InputError(f"{path}, line {line}: a key of more than {MAX_PARTS} parts.")
    try:
        content = tomllib.loads(text)
        _check_depth(content)
    except RecursionError:
        raise InputError(f"{path}: no valid TOML: its tables or lists nest too deeply.") from None
    except ValueError as error:  # an integer of thousands of digits is no TOMLDecodeError
        reason = str(error).partition(";")[0].rstrip(".")
        raise InputError(f"{path}: no valid TOML: {reason}.") from None
    return content


def _check_depth(value: Any, depth: int = 0) -> None:
    if depth > MAX_PARTS:
        raise RecursionError
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            _check_depth(item, depth + 1)
