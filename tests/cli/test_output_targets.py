"""``-o FILE --force`` replaces regular files alone: no device, pipe, link or folder is lost."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from gridsched.cli.app import main
from gridsched.errors import InputError
from gridsched.files.output_files import check_writable, write_whole


def pipe(path: Path) -> None:
    os.mkfifo(path)


def link(path: Path) -> None:
    path.with_name("original.csv").write_text("mine")
    path.symlink_to("original.csv")


def broken_link(path: Path) -> None:
    path.symlink_to("missing.csv")


def link_to_device(path: Path) -> None:
    path.symlink_to("/dev/null")


def unix_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))


KINDS = [pipe, link, broken_link, link_to_device, unix_socket]


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("force", [False, True])
def test_what_is_no_regular_file_is_never_replaced(tmp_path: Path, make: Callable[[Path], None], force: bool):
    """One line that says so, before and when it is written; the target is what it was."""
    target = tmp_path / "out.csv"
    make(target)
    before = os.lstat(target)
    content = {path: path.read_text() for path in tmp_path.glob("original*")}
    for refuse in (check_writable, lambda path, force: write_whole(path, "a,b\n", force=force)):
        with pytest.raises(InputError, match=r"out\.csv") as caught:
            refuse(target, force=force)
        assert "\n" not in str(caught.value)
    after = os.lstat(target)
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
    assert content == {path: path.read_text() for path in tmp_path.glob("original*")}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may replace a device")
def test_a_device_is_never_replaced(tmp_path: Path):
    """As root the folder of a device is writable, and the device would become a file."""
    device = tmp_path / "null"
    try:
        os.mknod(device, 0o020666, os.makedev(1, 3))
    except OSError:
        pytest.skip("no device can be made here")
    with pytest.raises(InputError, match="is no regular file"):
        write_whole(device, "text", force=True)
    assert device.is_char_device()


def test_the_command_says_so_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture):
    """``workload generate -o LINK --force``: exit status 2, and the link is there."""
    link(tmp_path / "bag.csv")
    arguments = ["workload", "generate", "--kind", "bag", "--tasks", "3", "--mean-flops", "10"]
    arguments += ["--heterogeneity", "0", "--seed", "1", "-o", str(tmp_path / "bag.csv")]
    assert main([*arguments, "--force"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert (tmp_path / "original.csv").read_text() == "mine"
    assert (tmp_path / "bag.csv").is_symlink()


def test_regular_files_are_replaced_with_force(tmp_path: Path):
    """The usual case: refused without --force, replaced with it."""
    (tmp_path / "a.csv").write_text("old")
    with pytest.raises(InputError, match="exists already"):
        write_whole(tmp_path / "a.csv", "new")
    write_whole(tmp_path / "a.csv", "new", force=True)
    assert (tmp_path / "a.csv").read_text() == "new"
