#!/usr/bin/env bash
# Build the site of the documents into site/. It reads the sources and runs nothing of gridsched, so
# it needs no SimGrid: Zensical gets an environment of its own. A broken link ends it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

PYTHON="${PYTHON:-python3}"
STAMP=.venv-docs/set_up_done
wanted="$("$PYTHON" -c 'import tomllib
with open("pyproject.toml", "rb") as file:
    print(*tomllib.load(file)["project"]["optional-dependencies"]["docs"], sep="\n")')"
fingerprint="$({ pwd -P; printf '%s\n' "$wanted"; cat constraints.txt; } | sha256sum)"

if [ ! -f "$STAMP" ] || [ "$(cat "$STAMP")" != "$fingerprint" ]; then
    echo "make docs: .venv-docs with Zensical; half a minute, once."
    "$PYTHON" -m venv --clear .venv-docs
    printf '%s\n' "$wanted" >.venv-docs/requirements.txt
    .venv-docs/bin/python -m pip install --quiet --no-input --disable-pip-version-check \
        -c constraints.txt -r .venv-docs/requirements.txt
    echo "$fingerprint" >"$STAMP"
fi
rm -rf site
"$PYTHON" scripts/documents_site.py
.venv-docs/bin/python -m zensical build --clean --strict
echo "make docs: open site/index.html; its search needs a server: python3 -m http.server -d site"
