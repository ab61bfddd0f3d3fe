"""Text in: the one reader of all text files."""

from __future__ import annotations

from pathlib import Path

import pytest

from gridsched.errors import InputError
from gridsched.files.input_files import read_text


def test_a_byte_order_mark_is_skipped(tmp_path: Path):
    """Spreadsheets put one before their CSV."""
    path = tmp_path / "t.csv"
    path.write_bytes(b"\xef\xbb\xbfname\n\xc3\xa9\n")
    assert read_text(path) == "name\né\n"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [(b"ab\xff", "no text in UTF-8 \\(byte 2\\)"), (b"a\0b", "NUL"), (b"abcdefg", "at most 0 MB")],
)
def test_what_is_no_text_is_refused(tmp_path: Path, content: bytes, complaint: str):
    """Other bytes, NUL and files that are too large are told in one line."""
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=complaint):
        read_text(path, 6)
