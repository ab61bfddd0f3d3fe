"""Archives of somebody else: small files that would unpack to gigabytes."""

from __future__ import annotations

import io
import tracemalloc
import zipfile

import numpy as np
import pytest
import traces_by_hand as by_hand

from gridsched.errors import InputError
from gridsched.export.export import read_export, write_export


@pytest.fixture
def folder(tmp_path):
    """The export of a run."""
    write_export(
        by_hand.everything_at_once(), directory=tmp_path / "e", plugin_j=None, provenance={}, workload_name="bag"
    )
    return tmp_path / "e"


def with_member(folder, name, size, *, shape=None, compression=zipfile.ZIP_DEFLATED, dtype="<f8"):
    """Put an array of zeros into the archive of an export, `size` bytes long."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": dtype, "fortran_order": False, "shape": shape or (size // 8,)}
    )
    zeros = bytes(1 << 20)
    with (
        zipfile.ZipFile(folder / "trace.npz", "a", compression) as archive,
        archive.open(f"{name}.npy", "w", force_zip64=True) as stream,
    ):
        stream.write(header.getvalue())
        for done in range(0, size, len(zeros)):
            stream.write(zeros[: size - done])


def peak_of_reading(folder):
    """Return what reading an export takes at its peak [byte], and the complaint or None."""
    tracemalloc.start()
    try:
        read_export(folder)
        return tracemalloc.get_traced_memory()[1], None
    except InputError as error:
        return tracemalloc.get_traced_memory()[1], str(error)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["own", "../tasks.flops"])
def test_arrays_that_no_run_has_are_not_unpacked(folder, name):
    """A small file that holds 300 MB of zeros is read in no time, without them."""
    before = peak_of_reading(folder)[0]
    with_member(folder, name, 300 << 20)
    peak, complaint = peak_of_reading(folder)
    assert complaint is None
    assert peak < before + (16 << 20)


@pytest.mark.parametrize("name", ["notes.own", "tasks.width"])
def test_an_archive_that_unpacks_to_far_too_much_is_refused(folder, name):
    """Before it is unpacked, by what it says of itself."""
    with_member(folder, name, 300 << 20)
    peak, complaint = peak_of_reading(folder)
    assert "trace.npz: unpacks to 300 MB" in complaint
    assert peak < 16 << 20


@pytest.mark.parametrize(
    "options",
    [
        {"shape": (1 << 40,)},
        {"shape": (1 << 20, 1 << 20)},
        {"dtype": "|O"},
        {"dtype": "|V0", "shape": (1 << 40,)},
        {"dtype": "|V8", "shape": (1 << 40, 0, 1 << 40)},
        {"compression": zipfile.ZIP_LZMA},
        {"compression": zipfile.ZIP_BZIP2},
    ],
)
def test_an_array_that_says_that_it_is_larger_than_it_is_is_refused(folder, options):
    """Nothing is put aside for it."""
    with_member(folder, "notes.own", 64, **options)
    peak, complaint = peak_of_reading(folder)
    assert "is no whole archive of a run" in complaint
    assert peak < 16 << 20


@pytest.mark.parametrize(
    "header",
    [
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (3,)",
        # NumPy divides by this 0, which ends the process
        b"{'descr': '<M8[ns/0]', 'fortran_order': False, 'shape': (3,)}",
        b"{'descr': [('a', '<M8[ns/0]')], 'fortran_order': False, 'shape': (3,)}",
        b"{'descr': 'f8,,', 'fortran_order': False, 'shape': (3,)}",
        b"{'descr': [['<f8']], 'fortran_order': False, 'shape': (3,)}",
        b"{'descr': None, 'fortran_order': False, 'shape': (3,)}",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': 'x'}",
        b"[]",
        b"{}",
        b"(" * 9_000,
        b"-" * 9_000 + b"1",
        b"1" * 60_000,
        b"\0",
    ],
    ids=range(13),
)
def test_an_array_whose_header_is_none_is_refused(folder, header):
    """In one line, whatever the header makes of Python's parser and of NumPy."""
    array = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(24)
    with zipfile.ZipFile(folder / "trace.npz", "a") as archive:
        archive.writestr("notes.own.npy", array)
    with pytest.raises(InputError, match=r"trace\.npz") as caught:
        read_export(folder)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("name", ["executions", "host_changes", "tasks.flops", "description"])
def test_an_array_of_several_dimensions_is_refused(folder, name):
    """A run has none."""
    with np.load(folder / "trace.npz") as archive:
        arrays = dict(archive)
    np.savez(folder / "trace.npz", **(arrays | {name: arrays[name][None]}))
    with pytest.raises(InputError, match=r"trace\.npz.*shape"):
        read_export(folder)


def test_a_size_that_the_archive_understates_is_refused(folder):
    """What is unpacked is no more than it says."""
    with_member(folder, "notes.own", 300 << 20)
    path = folder / "trace.npz"
    with zipfile.ZipFile(path) as archive:
        size = archive.getinfo("notes.own.npy").file_size
    content = path.read_bytes()
    assert content.count(size.to_bytes(4, "little")) >= 1
    path.write_bytes(content.replace(size.to_bytes(4, "little"), (1000).to_bytes(4, "little")))
    peak, complaint = peak_of_reading(folder)
    assert complaint is not None
    assert peak < 16 << 20


def test_a_description_of_endless_values_is_refused(folder):
    """Each of 30 million empty lists would take 72 bytes."""
    text = np.frombuffer(b"[" + b"[]," * 30_000_000 + b"0]", np.uint8)
    np.savez_compressed(folder / "trace.npz", description=text)
    peak, complaint = peak_of_reading(folder)
    assert "20,000,000 values" in complaint
    assert peak < 512 << 20
