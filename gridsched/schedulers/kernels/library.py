"""Builds the library of loops: what numba makes of all kernels, linked so that runs need no numba.

Each kernel that a group's call calls is compiled for the arguments that it gets there. numba leaves LLVM's code of
it and of all that it calls; llvmlite makes one object of the group, for the processors of a level, and a C compiler
links them with `calls.c` and a function for each kernel. So the library holds the machine code that numba would
make, and results are equal bit by bit.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import subprocess
import sys
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from hashlib import blake2b
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from shutil import which
from typing import Any, NamedTuple

from gridsched import loop_library
from gridsched.compiled import Kernel, noted_calls
from gridsched.errors import InputError
from gridsched.files.output_files import write_whole

_HERE = Path(__file__).parent
_C_TYPES = {"float64": "double", "int64": "int64_t", "bool": "int8_t"}
_NUMPY_TYPES = {"float64": "NPY_DOUBLE", "int64": "NPY_INT64", "uint64": "NPY_UINT64", "bool": "NPY_BOOL"}
#: What numba's functions return where all is well; the latter, where the result is None.
_OK, _NONE = 0, -2
#: What all groups take on one CPU, for a level [min].
MINUTES_OF_CPU = 2.7
_FLAGS = ("-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-DPy_LIMITED_API=0x030b0000", "-s")


class Loops(NamedTuple):
    """What a group of kernels becomes.

    Attributes
    ----------
    code : bytes
        Object file.
    functions : dict of str to tuple of str
        C functions that call the versions of each kernel, by its id.
    sources : frozenset of Path
        Files on which the code depends.
    """

    code: bytes
    functions: dict[str, tuple[str, ...]]
    sources: frozenset[Path]


def c_compiler() -> str | None:
    """Return the C compiler: that of the variable ``CC``, else the first of the usual; None if there is none."""
    return next((found for name in (os.environ.get("CC", ""), "cc", "gcc", "clang") if (found := which(name))), None)


def needed_compiler() -> str:
    """Return the C compiler.

    Raises
    ------
    OSError
        If there is none.
    """
    if (compiler := c_compiler()) is None:
        raise OSError("there is no C compiler: install gcc, or name one by the variable CC")
    return compiler


def build(groups: Iterable[str], call: Callable[[str], None], level: str, folder: Path) -> Path:
    """Compile kernels for a level of processors, on all CPUs, into a library.

    Parameters
    ----------
    groups : iterable of str
        Modules that are imported first.
    call : callable
        Calls each kernel of a group, once for each kind of arguments.
    level : str
        One of `gridsched.loop_library.LEVELS`, which this processor belongs to.
    folder : Path
        Where the library is put.

    Returns
    -------
    Path

    Raises
    ------
    OSError
        If there is no C compiler, or it fails, or a process is killed.
    """
    names = tuple(groups)
    compile_group = partial(_kept_loops, call, loop_library.LEVELS[level].cpu)
    try:
        with ProcessPoolExecutor(len(os.sched_getaffinity(0)), get_context("spawn")) as pool:
            loops = list(pool.map(compile_group, names, range(len(names))))
    except BrokenProcessPool:
        raise OSError("a process that compiles was killed, perhaps for want of memory") from None
    return link(loops, loop_library.library_name(level), folder)


def _kept_loops(call: Callable[[str], None], cpu: str, group: str, number: int) -> Loops:
    """Return what `compile_loops` does, or did when its sources were those that are here."""
    file = _HERE / "__pycache__" / f"{group}.{cpu}.loops"
    made_by = f"numba {version('numba')}, number {number}"
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        kept = json.loads(file.read_bytes())
        sources = [loop_library.PACKAGE / name for name in kept["sources"]]
        functions = {id: tuple(texts) for id, texts in kept["functions"].items()}
        loops = Loops(b64decode(kept["code"]), functions, frozenset(sources))
        made_of = (kept["made_by"], kept["digest"], kept["seal"])
        if made_of == (made_by, loop_library.digest_of(sources), _seal(loops)):
            return loops
    loops = compile_loops(call, cpu, group, number)
    sources = sorted(loops.sources)
    kept = {
        "made_by": made_by,
        "digest": loop_library.digest_of(sources),
        "sources": [str(source.relative_to(loop_library.PACKAGE)) for source in sources],
        "functions": loops.functions,
        "seal": _seal(loops),
        "code": b64encode(loops.code).decode(),
    }
    with contextlib.suppress(OSError, InputError):  # then the next library takes longer
        file.parent.mkdir(exist_ok=True)
        write_whole(file, json.dumps(kept), force=True)
    return loops


def _seal(loops: Loops) -> str:
    """Return a digest of what is kept of a group: a damaged one is compiled again."""
    return blake2b(loops.code + json.dumps(loops.functions).encode(), digest_size=16).hexdigest()


def compile_loops(call: Callable[[str], None], cpu: str, group: str, number: int) -> Loops:
    """Compile a group's kernels, in a process whose numba is used for nothing else.

    Parameters
    ----------
    call : callable
        As of `build`.
    cpu : str
        LLVM's name of a processor.
    group : str
    number : int
        Parts the C functions of groups.

    Returns
    -------
    Loops
    """
    os.environ["NUMBA_CPU_NAME"], os.environ["NUMBA_CPU_FEATURES"] = cpu, ""
    importlib.import_module(group)
    with noted_calls() as calls:
        call(group)
    made = _versions(calls)
    functions = {
        id: tuple(_c_function(f"g{number}_{id.rpartition('.')[2]}_{k}", each) for k, each in enumerate(versions))
        for id, versions in made.items()
    }
    return Loops(_object(made, cpu), functions, _sources())


def _versions(calls: list[tuple[Kernel, tuple[Any, ...]]]) -> dict[str, list[Any]]:
    """Return what numba made of each kernel, by module and name, for the arguments of each call."""
    from numba import typeof

    found: dict[str, list[Any]] = {}
    for kernel, arguments in calls:
        made = kernel.dispatcher.overloads[tuple(map(typeof, arguments))]
        versions = found.setdefault(kernel.id, [])
        if made not in versions:
            versions.append(made)
    return found


def _object(loops: Mapping[str, list[Any]], cpu: str) -> bytes:
    """Return one object file of all loops; what these do not call is left out."""
    from llvmlite import binding

    kept = [made for versions in loops.values() for made in versions]
    parts = [binding.parse_assembly(made.library.get_llvm_str()) for made in kept]
    whole = parts[0]
    for part in parts[1:]:
        whole.link_in(part)
    names = {made.fndesc.llvm_func_name for made in kept}
    for each in (*whole.functions, *whole.global_variables):
        if not each.is_declaration and each.name not in names:
            each.linkage = "internal"
    target = binding.Target.from_triple(binding.get_process_triple())
    machine = target.create_target_machine(cpu=cpu, opt=3, reloc="pic", codemodel="default")
    passes = binding.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(whole, binding.create_pass_builder(machine, binding.create_pipeline_tuning_options()))
    return bytes(machine.emit_object(whole))


def _sources() -> frozenset[Path]:
    """Return the files of all that was compiled here, and those beside it, whose constants it may name."""
    from numba.core.dispatcher import Dispatcher

    files = {*_HERE.glob("*.py"), _HERE / "calls.c"}
    for module in list(sys.modules.values()):
        for each in list(vars(module).values()):
            if isinstance(made := each.__dict__.get("dispatcher") if isinstance(each, Kernel) else each, Dispatcher):
                file = Path(made.py_func.__code__.co_filename)
                files.update(file.parent.glob("*.py") if file.parent.name == "kernels" else (file,))
    return frozenset(file for file in files if loop_library.PACKAGE in file.parents)


# ---- the C code ---------------------------------------------------------------------------------


class _Arguments:
    """Statements that unpack a loop's arguments, and what numba's function gets."""

    def __init__(self, types: tuple[Any, ...]) -> None:
        self.statements: list[str] = []
        self.given: list[tuple[str, str]] = []  # C's type, expression
        for place, type in enumerate(types):
            self._unpack(type, f"given[{place}]")

    def _unpack(self, type: Any, expression: str) -> None:
        from numba import types

        name = f"a{len(self.statements)}"
        if isinstance(type, types.Array):
            if type.layout != "C":
                raise TypeError(f"a loop is called with an array that has gaps, {type}")
            kind = f"{_NUMPY_TYPES[str(type.dtype)]}, {type.ndim}, {int(type.mutable)}"
            self._state(f"PyArrayObject *{name} = array_of({expression}, {kind})", f"!{name}")
            self.given += [("void *", "NULL"), ("void *", name)]
            self.given += [("int64_t", f"PyArray_SIZE({name})"), ("int64_t", f"PyArray_ITEMSIZE({name})")]
            self.given.append(("void *", f"PyArray_DATA({name})"))
            for of in ("PyArray_DIM", "PyArray_STRIDE"):
                self.given += [("int64_t", f"{of}({name}, {axis})") for axis in range(type.ndim)]
        elif isinstance(type, types.BaseTuple):
            items = _items(type)
            self._state(f"PyObject *{name} = {expression}", f"!is_tuple({name}, {len(items)})")
            for place, item in enumerate(items):
                self._unpack(item, f"PyTuple_GetItem({name}, {place})")
        else:
            read = {"bool": "truth_of", "int64": "integer_of", "float64": "float_of"}[str(type)]
            self._state(f"{_C_TYPES[str(type)]} {name}", f"!{read}({expression}, &{name})")
            self.given.append((_C_TYPES[str(type)], name))

    def _state(self, declaration: str, misfit: str) -> None:
        self.statements.append(f"    {declaration};\n    if ({misfit})\n        return no_fit();")


def _items(type: Any) -> list[Any]:
    """Return the types of a tuple's items."""
    return list(type)


def _declared(type: Any, name: str) -> str:
    """Return C's declaration of a result as numba lays it out."""
    from numba import types

    if isinstance(type, types.Array):
        shape = f"int64_t shape[{type.ndim}], strides[{type.ndim}];"
        return f"struct {{ void *memory, *argument; int64_t n, item; void *data; {shape} }} {name}"
    if isinstance(type, types.BaseTuple):
        fields = " ".join(f"{_declared(item, f'f{place}')};" for place, item in enumerate(_items(type)))
        return f"struct {{ {fields} }} {name}"
    if isinstance(type, types.NoneType):
        return f"void *{name}"
    return f"{_C_TYPES[str(type)]} {name}"


def _box(type: Any, name: str) -> str:
    """Return C's expression that makes a Python object of a result."""
    from numba import types

    if isinstance(type, types.Array):
        fields = ", ".join(f"{name}.{field}" for field in ("memory", "argument", "data"))
        return f"boxed({fields}, {type.ndim}, {name}.shape, {name}.strides, {_NUMPY_TYPES[str(type.dtype)]})"
    if isinstance(type, types.BaseTuple):
        items = _items(type)
        return f"tuple_of({', '.join([str(len(items)), *(_box(x, f'{name}.f{k}') for k, x in enumerate(items))])})"
    if isinstance(type, types.NoneType):
        return "Py_NewRef(Py_None)"
    make = {"bool": "PyBool_FromLong", "int64": "PyLong_FromLongLong", "float64": "PyFloat_FromDouble"}
    return f"{make[str(type)]}({name})"


def _c_function(name: str, made: Any) -> str:
    """Return C's function that calls one version of a loop."""
    arguments, result = _Arguments(made.signature.args), made.signature.return_type
    types = ", ".join(["void *", "void **", *(type for type, _ in arguments.given)])
    values = ", ".join(["&result", "&fault", *(value for _, value in arguments.given)])
    statements = "\n".join(arguments.statements)
    return f"""
extern int32_t {name}_loop({types}) __asm__("{made.fndesc.llvm_func_name}");

static PyObject *{name}(PyObject *const *given, Py_ssize_t n)
{{
    if (n != {len(made.signature.args)})
        return no_fit();
{statements}
    {_declared(result, "result")};
    void *fault = NULL;
    int32_t status = {name}_loop({values});
    if (status != {_OK} && status != {_NONE})
        return failed("{name}", status, fault);
    return {_box(result, "result")};
}}
"""


def _c_code(library: str, loops: list[Loops]) -> str:
    """Return the C code of a library, and what it states of itself: its sources, and their digest."""
    parts, table, versions_of = [(_HERE / "calls.c").read_text()], [], dict[str, list[str]]()
    for each in loops:
        for id, functions in each.functions.items():
            parts += functions
            versions_of.setdefault(id, []).extend(_name_in(text) for text in functions)
    for k, (id, versions) in enumerate(versions_of.items()):
        tries = "\n".join(
            f"    if ((result = {version}(given, n)) != Py_NotImplemented)\n        return result;\n"
            "    Py_DECREF(result);"
            for version in versions
        )
        parts.append(
            f"\nstatic PyObject *loop{k}(PyObject *Py_UNUSED(module), PyObject *const *given, Py_ssize_t n)\n"
            f"{{\n    PyObject *result;\n{tries}\n    return no_fit();\n}}\n"
        )
        table.append(f'    {{"{id}", (PyCFunction)(void (*)(void))loop{k}, METH_FASTCALL, NULL}},\n')
    sources = sorted(frozenset[Path]().union(*(each.sources for each in loops)))
    names = "\\n".join(str(file.relative_to(loop_library.PACKAGE)) for file in sources)
    parts.append(
        f"""
static PyMethodDef methods[] = {{
{"".join(table)}    {{NULL, NULL, 0, NULL}},
}};
static struct PyModuleDef module = {{PyModuleDef_HEAD_INIT, "{library}", NULL, -1, methods, NULL, NULL, NULL, NULL}};

PyMODINIT_FUNC PyInit_{library}(void)
{{
    import_array();
    PyObject *made = PyModule_Create(&module);
    if (made && (PyModule_AddStringConstant(made, "sources", "{names}") < 0
                 || PyModule_AddStringConstant(made, "digest", "{loop_library.digest_of(sources)}") < 0))
        Py_CLEAR(made);
    return made;
}}
"""
    )
    return "".join(parts)


def _name_in(function: str) -> str:
    return function.partition("PyObject *")[2].partition("(")[0]


def link(loops: list[Loops], name: str, folder: Path) -> Path:
    """Write the C code of a library, compile and link it; it takes its place when it is whole.

    Parameters
    ----------
    loops : list of Loops
    name : str
        Of the module that the library is.
    folder : Path

    Returns
    -------
    Path

    Raises
    ------
    OSError
        If there is no C compiler, or it fails.
    """
    from sysconfig import get_path

    import numpy as np

    compiler = needed_compiler()
    target = folder / f"{name}.abi3.so"
    with tempfile.TemporaryDirectory(dir=folder) as work:
        code, made = Path(work, "loops.c"), Path(work, target.name)
        code.write_text(_c_code(name, loops))
        objects = [Path(work, f"{k}.o") for k in range(len(loops))]
        for file, each in zip(objects, loops, strict=True):
            file.write_bytes(each.code)
        command = [compiler, *_FLAGS, f"-I{get_path('include')}", f"-I{np.get_include()}", str(code)]
        command += [*map(str, objects), "-lm", "-o", str(made)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise OSError(f"{compiler}: {done.stderr.strip() or f'status {done.returncode}'}")
        made.write_bytes(loop_library.sealed(made.read_bytes()))
        return made.replace(target)


def main(folder: str) -> None:
    """Build the libraries of all kernels, for each level that this processor belongs to, as for a wheel."""
    from gridsched.schedulers.kernels import call_group, groups

    Path(folder).mkdir(parents=True, exist_ok=True)
    for level in loop_library.levels_here():
        build(groups(), call_group, level, Path(folder))


if __name__ == "__main__":
    main(sys.argv[1])
