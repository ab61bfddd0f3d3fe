#!/usr/bin/env bash
# The comparison behind 'make demo': a bag of 720 tasks on the shipped Green500 grid, six schedulers.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

PLATFORM=platforms/green500.xml
BAG=demo/bag.csv
FIGURE=demo/comparison.png

show_and_run() {
    printf '\n$ %s\n' "$*"
    PATH="$PWD/.venv/bin:$PATH" "$@"
}

mkdir -p demo
# About an hour for a task on a host of the middle of the list.
show_and_run gridsched workload generate --kind bag --tasks 720 --mean-flops 1e18 \
    --heterogeneity 0.5 --seed 1 -o "$BAG" --force
show_and_run gridsched compare --platform "$PLATFORM" --workload "$BAG" --plot "$FIGURE" --force

cat <<END

The figure is $FIGURE, its tasks are $BAG, both made anew by each 'make demo'.
What to try next, after 'source .venv/bin/activate':
  gridsched schedulers
  gridsched validate --platform $PLATFORM --workload $BAG --schedulers lecsa
  gridsched compare --platform $PLATFORM --workload $BAG --schedulers lecsa,min_min,mct
END
