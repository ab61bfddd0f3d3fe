#!/usr/bin/env bash
# Make .venv with SimGrid and gridsched in it: the distribution's SimGrid where that is 4.0 or 4.1
# (python3-simgrid of Debian 13, Ubuntu 25.10 and newer), else 4.1 compiled from PyPI. Repeating it costs nothing: it works again only
# when the files that decide what is installed, or loops, have changed, or PYTHON=... names another interpreter;
# a SimGrid wheel in dist/ or in the folder GRIDSCHED_WHEELS ('make wheels') saves the compilation.
# Where another script sources this one, it offers its functions and does nothing.
set -euo pipefail

# pip splits PIP_CONSTRAINT at blanks, so the files are named relative to the checkout.
cd "$(dirname "${BASH_SOURCE[0]}")/.."

STAMP=.venv/set_up_done
VENV_PYTHON=.venv/bin/python
SIMGRID_MODULE=scripts/simgrid_module.py
SYSTEM_PYTHON=/usr/bin/python3
missing_packages=()

say() { printf '%s\n' "set-up: $*"; }
stop() { printf '%s\n' "set-up: $*" >&2; exit 1; }

# ---- what is there ------------------------------------------------------------------------------

fingerprint() {
    { pwd -P; cat pyproject.toml constraints.txt build-constraints.txt scripts/set_up.sh \
        scripts/simgrid_module.py; } | sha256sum
}

is_done() {
    [ -f "$STAMP" ] && [ "$(cat "$STAMP")" = "$(fingerprint)" ] && is_of_wanted_python \
        && [ -x .venv/bin/gridsched ] && "$VENV_PYTHON" -c 'import numpy' 2>/dev/null
}

# Whether .venv is of the interpreter that PYTHON names; without PYTHON, any will do.
installation_of() { "$1" -c 'import sys; print(sys.base_prefix, sys.version)' 2>/dev/null; }
is_of_wanted_python() {
    [ -z "${PYTHON:-}" ] || [ "$(installation_of "$PYTHON")" = "$(installation_of "$VENV_PYTHON")" ]
}

loads_simgrid() {
    "$VENV_PYTHON" -c 'from gridsched.drivers.simgrid_library import load_simgrid; load_simgrid()'
}

# The folders with ready wheels, and the SimGrid wheels in them for an interpreter.
wheel_folders() { find dist ${GRIDSCHED_WHEELS:+"$GRIDSCHED_WHEELS"} -maxdepth 0 2>/dev/null || true; }
simgrid_wheel() {
    local tag
    tag="$(cpython_tag "$1")" || return 0
    wheel_folders | while read -r folder; do
        find "$folder" -maxdepth 1 -name "simgrid-4.1-$tag-*_$(uname -m).whl"
    done
}
cpython_tag() { "$1" -c 'import sys; print("cp%d%d" % sys.version_info[:2])'; }

has_simgrid() {
    "$VENV_PYTHON" -c 'from importlib.metadata import version as v; assert v("simgrid")[:4] == "4.1"' \
        2>/dev/null && "$VENV_PYTHON" "$SIMGRID_MODULE" check >/dev/null
}

# The distribution's package may have no metadata, so the module itself is asked.
system_simgrid() {
    "$SYSTEM_PYTHON" -c 'import simgrid; print(simgrid.simgrid_version)' 2>/dev/null || true
}
offered_simgrid() {
    apt-cache policy python3-simgrid 2>/dev/null | sed -n 's/^ *Candidate: \([0-9.]*\).*/\1/p'
}
is_supported() { case "$1" in 4.[01] | 4.[01].*) true ;; *) false ;; esac; }

# Whether the distribution has, or can install, a SimGrid that we can use; a chosen PYTHON or a
# .venv that holds SimGrid already goes first.
takes_distributions_simgrid() {
    [ -z "${PYTHON:-}" ] && ! has_simgrid && is_new_enough "$SYSTEM_PYTHON" || return 1
    is_supported "$(system_simgrid)" && return
    command -v apt-cache >/dev/null && can_be_root || return 1
    [ -n "$(offered_simgrid)" ] || as_root apt-get -qq update || return 1  # a bare machine's lists
    is_supported "$(offered_simgrid)"
}

is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }
makes_venvs() { "$1" -c 'import ensurepip, venv' 2>/dev/null; }
has_headers() {
    "$1" -c 'import os, sys, sysconfig as s
sys.exit(not os.path.exists(os.path.join(s.get_config_var("INCLUDEPY"), "Python.h")))'
}
# apt can complete only the Python that Debian installed.
is_of_the_system() {
    case "$("$1" -c 'import os, sys; print(os.path.realpath(sys.executable))')" in
        /usr/bin/*) command -v apt-get >/dev/null ;;
        *) false ;;
    esac
}
includes() { echo "#include <$1>" | g++ -I/usr/include/eigen3 -E -x c++ - >/dev/null 2>&1; }

# Print the first interpreter that is new enough and complete, or that apt can complete: that of a
# .venv that stays goes first.
choose_python() {
    local candidate
    for candidate in ${PYTHON:-"$VENV_PYTHON" python3 python3.13 python3.12 python3.11 /usr/bin/python3}; do
        if is_new_enough "$candidate" && { is_of_the_system "$candidate" \
            || { makes_venvs "$candidate" && has_headers "$candidate"; }; }; then
            command -v "$candidate"
            return
        fi
    done
}

# ---- system packages ----------------------------------------------------------------------------

find_missing_packages() {
    local python="$1" name
    if [ -n "$from_distribution" ]; then
        is_supported "$(system_simgrid)" || missing_packages+=(python3-simgrid)
        makes_venvs "$python" || missing_packages+=(python3-venv)
        return
    fi
    if [ -z "$python" ]; then
        missing_packages+=(python3 python3-venv python3-dev)
    elif is_of_the_system "$python"; then
        name="$("$python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')"
        makes_venvs "$python" || missing_packages+=("$name-venv")
        has_simgrid || [ -n "$(simgrid_wheel "$python")" ] || has_headers "$python" \
            || missing_packages+=("$name-dev")
    fi
    if has_simgrid || { [ -n "$python" ] && [ -n "$(simgrid_wheel "$python")" ]; }; then return; fi
    command -v g++ >/dev/null || missing_packages+=(g++)
    command -v make >/dev/null || missing_packages+=(make)
    command -v cmake >/dev/null || missing_packages+=(cmake)
    includes boost/version.hpp || missing_packages+=(libboost-dev)
    includes Eigen/Core || missing_packages+=(libeigen3-dev)
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

can_be_root() {
    [ "$(id -u)" = 0 ] && return
    command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }
}

install_missing_packages() {
    local list="${missing_packages[*]}"
    command -v apt-get >/dev/null \
        || stop "missing (Debian's names): $list. Install them with this system's tool, then repeat."
    can_be_root \
        || stop "no root or sudo here: ask for 'apt-get install $list', then repeat."
    say "step 1 of 4: system packages: $list"
    as_root apt-get -qq update \
        || say "'apt-get update' failed; trying with the package lists that are there."
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes \
        --no-install-recommends -o DPkg::Lock::Timeout=300 "${missing_packages[@]}" >/dev/null \
        || stop "'apt-get install $list' failed: see above."
}

# ---- Python packages ----------------------------------------------------------------------------

# A .venv without pip, of a checkout that has moved or of another Python than the wanted is of no use.
discard_useless_venv() {
    [ -d .venv ] || return 0
    if ! is_of_wanted_python; then
        say ".venv is of another Python than PYTHON=$PYTHON: it is made anew."
        rm -rf .venv
    elif "$VENV_PYTHON" -m pip --version >/dev/null 2>&1 \
        && head -n 3 .venv/bin/pip | grep -qF "$(pwd -P)/.venv/bin/"; then
        rm -f "$STAMP"
    else
        say ".venv has no pip or belongs to another folder: it is made anew."
        rm -rf .venv
    fi
}

# PIP_CONSTRAINT reaches the isolated build of older pips, PIP_BUILD_CONSTRAINT that of pip 25.3 and
# newer. PIP_USE_PEP517: pip 23.0 (Debian 12's) would otherwise build SimGrid without isolation and
# without keeping the wheel in its cache.
run_pip() {
    PIP_CONSTRAINT="${PIP_CONSTRAINT:+$PIP_CONSTRAINT }build-constraints.txt" \
    PIP_BUILD_CONSTRAINT="${PIP_BUILD_CONSTRAINT:+$PIP_BUILD_CONSTRAINT }build-constraints.txt" \
    PIP_USE_PEP517=1 PIP_DISABLE_PIP_VERSION_CHECK=1 \
        "$VENV_PYTHON" -m pip "$@"
}

install() {
    local links=() folder
    while read -r folder; do links+=(--find-links "$folder"); done < <(wheel_folders)
    run_pip install --no-input --progress-bar off -c constraints.txt ${links[@]+"${links[@]}"} "$@"
}

# Remove from pip's cache the SimGrid wheels that .venv's Python cannot load: their names are right,
# so pip would install them again and again.
forget_wrong_wheels() {
    local tag wheel fault
    tag="$(cpython_tag "$VENV_PYTHON")"
    # pip refuses to list a cache that is switched off
    { run_pip cache list --format=abspath "simgrid-4.1-$tag" 2>/dev/null || true; } | while read -r wheel; do
        fault="$("$VENV_PYTHON" "$SIMGRID_MODULE" check "$wheel")" || true
        [ -n "$fault" ] || continue
        say "removed from pip's cache: $wheel ($fault)"
        rm -f "$wheel"
    done
}

# Put a SimGrid wheel that .venv's Python loads into a folder: the one of pip's cache or a new one.
# The build sees that Python first on PATH and in CMake's own variables.
make_simgrid_wheel() {
    local folder="$1" fault
    rm -rf "$folder" && mkdir -p "$folder"
    forget_wrong_wheels
    "$VENV_PYTHON" "$SIMGRID_MODULE" toolchain >"$folder/python.cmake"
    PATH="$PWD/$(dirname "$VENV_PYTHON"):$PATH" CMAKE_TOOLCHAIN_FILE="$PWD/$folder/python.cmake" \
        run_pip wheel --no-input --progress-bar off --no-deps -c constraints.txt -w "$folder" simgrid \
        || stop "SimGrid was not built: see above. Without it only --driver reference works."
    if ! fault="$("$VENV_PYTHON" "$SIMGRID_MODULE" check "$(echo "$folder"/simgrid-*.whl)")"; then
        forget_wrong_wheels
        stop "SimGrid came out for another Python: $fault. It is not installed, and not kept. Only CMake" \
            "3.21 and newer are sure to build for the Python of .venv; here is $(cmake --version | head -n 1)."
    fi
}

# Install SimGrid into .venv from a ready wheel, or from one that pip has or builds.
install_simgrid() {
    local folder=.venv/simgrid-wheel wheel fault
    wheel="$(simgrid_wheel "$VENV_PYTHON" | head -n 1)"
    if [ -z "$wheel" ]; then
        make_simgrid_wheel "$folder"
        wheel="$(echo "$folder"/simgrid-*.whl)"
    elif ! fault="$("$VENV_PYTHON" "$SIMGRID_MODULE" check "$wheel")"; then
        stop "$wheel cannot be used: $fault. Remove it, then repeat."
    fi
    # a module of another Python may stand there with the same version
    install --force-reinstall --no-deps "$wheel" || stop "SimGrid was not installed: see above."
    rm -rf "$folder"
}

# pip would compile SimGrid for want of metadata, so it installs everything else.
install_all_but_simgrid() {
    "$VENV_PYTHON" -c 'import re, tomllib
with open("pyproject.toml", "rb") as file:
    project = tomllib.load(file)["project"]
def requirements(listed):
    for each in listed:
        if extras := re.fullmatch(r"gridsched\[(.+)\]", each):
            for extra in extras[1].split(","):
                yield from requirements(project["optional-dependencies"][extra])
        elif not re.match(r"simgrid\b", each):
            yield each
print(*requirements([*project["dependencies"], "gridsched[test]"]), sep="\n")' \
        >.venv/requirements.txt
    install --quiet -r .venv/requirements.txt && install --quiet --no-deps --editable .
}

# Once for all processes. It does nothing where the loops are those of the sources; gridsched works without.
compile_loops() { .venv/bin/gridsched kernels compile; }

main() {
    local python from_distribution=""
    if is_done; then
        say "nothing to do, .venv is up to date."
        compile_loops
        return
    fi
    say "system packages where missing, .venv, SimGrid, gridsched with what its tests need."

    [ -z "${PYTHON:-}" ] || [ -n "$(choose_python)" ] \
        || stop "PYTHON=$PYTHON is not a Python 3.11 or newer with venv and header files."
    discard_useless_venv
    if takes_distributions_simgrid; then
        say "SimGrid is the distribution's python3-simgrid; this takes 1 to 2 minutes, once."
        from_distribution=yes
        python="$SYSTEM_PYTHON"
        [ ! -d .venv ] || rm -rf .venv  # of an interpreter that does not see it
    else
        python="$(choose_python)"
        if [ -n "$python" ] && [ -n "$(simgrid_wheel "$python")" ]; then
            say "SimGrid is $(simgrid_wheel "$python" | head -n 1); this takes 1 to 2 minutes, once."
        else
            say "this takes 5 to 14 minutes on 2 cores, once; SimGrid, the most of it, needs 2 GB of memory."
            say "Afterwards SimGrid comes from pip's cache in seconds, and a repeat does nothing."
        fi
    fi
    find_missing_packages "$python"
    if [ ${#missing_packages[@]} -gt 0 ]; then
        install_missing_packages
    else
        say "step 1 of 4: no system package is missing"
    fi
    python="${python:-/usr/bin/python3}"
    is_new_enough "$python" || stop "$("$python" --version) is too old: Python 3.11 is needed."

    say "step 2 of 4: .venv with $("$python" --version) ($python)"
    [ -d .venv ] || "$python" -m venv ${from_distribution:+--system-site-packages} .venv \
        || stop "'$python -m venv .venv' failed: see above."
    if [ -n "$from_distribution" ]; then
        say "step 3 of 4: SimGrid $(system_simgrid) is the distribution's"
        say "step 4 of 4: gridsched and its test tools"
        install_all_but_simgrid || stop "gridsched was not installed: see above."
    else
        say "step 3 of 4: SimGrid 4.1 (long only when pip builds it)"
        has_simgrid || install_simgrid
        say "step 4 of 4: gridsched and its test tools"
        install --quiet --editable '.[test]' || stop "gridsched was not installed: see above."
    fi
    # its pin of pyzmq compiles no more, and it works with the newer one
    install --quiet --no-deps pybatsim==3.2.1 docopt==0.6.2 \
        || say "pybatsim was not installed: the tests that need it will be skipped."
    loads_simgrid || stop "SimGrid was installed but does not load: see above."
    compile_loops
    fingerprint >"$STAMP"
    say "done."
}

[ "${BASH_SOURCE[0]}" != "$0" ] || main
