# The two commands on a bare machine are 'make demo' and 'make test'; 'make help' lists all.
# Variables: PYTHON (interpreter for .venv, which is made anew for another one), WORKERS (test processes).
SHELL := /bin/bash
# One more than there are cores: tests wait for commands and servers that they start.
WORKERS ?= $(shell expr $$(nproc) + 1)
# Tests start hundreds of commands: each takes gridsched as an installed package has it, with its bytecode.
export PYTHONDONTWRITEBYTECODE :=
PYTEST := .venv/bin/python -m pytest
# Each test process takes a stretch of the list, so that what tests of one file share is made once.
TOGETHER := -n $(WORKERS) --maxprocesses 8 --dist worksteal

.DEFAULT_GOAL := help
.PHONY: demo test style types test-long test-faults coverage benchmark benchmark-all wheels docs clean help

help: ## this list
	@echo "Targets (each sets up .venv where needed; the first time takes 5 to 14 minutes):"
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 24

demo: ## compare six schedulers on a Green500 grid: a table and a figure in demo/
	@echo "make demo: sets up .venv where needed, then compares six schedulers on a Green500 grid"
	@echo "(under a minute). The first time takes about 2 minutes more for the loops of schedulers, and 5 to 14 in all"
	@echo "where SimGrid must be compiled."
	@scripts/set_up.sh
	@scripts/run_demo.sh

test: ## check style, types and the order of imports, run the tests, name the 30 slowest
	@echo "make test: sets up .venv where needed, then runs the tests (11 to 16 minutes on 2 cores)."
	@echo "The first time takes about 2 minutes more for the loops of schedulers, and 5 to 14 in all where"
	@echo "SimGrid must be compiled."
	@scripts/set_up.sh
	@$(MAKE) --no-print-directory -j2 style types
	@$(PYTEST) -q $(TOGETHER) --hypothesis-profile=unattended --durations=30

style:
	@.venv/bin/ruff check --quiet .
	@.venv/bin/ruff format --check --quiet .

types:
	@.venv/bin/mypy
	@.venv/bin/lint-imports --no-logo

test-long: ## run the tests marked 'long', which 'make test' leaves out, and 10,000 damaged files
	@echo "make test-long: sets up .venv where needed, then runs the tests marked 'long', and 10,000 damaged files."
	@scripts/set_up.sh
	@$(PYTEST) -q $(TOGETHER) --hypothesis-profile=wide -m long
	@$(PYTEST) -q $(TOGETHER) --hypothesis-profile=wide tests/cli/test_mutated_files.py

test-faults: ## kill campaigns at random moments, 20 rounds, and look that no run is lost
	@echo "make test-faults: sets up .venv where needed, then runs the tests marked 'faults'."
	@scripts/set_up.sh
	@$(PYTEST) -q -m faults

coverage: ## run the tests and count which lines they reach; fail below the floor in pyproject.toml
	@echo "make coverage: sets up .venv where needed, then runs the tests (longer than 'make test')."
	@scripts/set_up.sh
	@$(PYTEST) -q $(TOGETHER) --hypothesis-profile=unattended --cov --cov-report=term:skip-covered

benchmark: ## measure whole commands and the drivers' cost per task: docs/performance.md
	@echo "make benchmark: sets up .venv where needed, then measures commands and drivers (some minutes)."
	@scripts/set_up.sh
	@.venv/bin/python benchmarks/whole_commands.py
	@.venv/bin/python benchmarks/run.py

benchmark-all: benchmark ## also large runs, campaigns, mapping events and whole trials (half an hour)
	@.venv/bin/python benchmarks/whole_commands.py --large
	@.venv/bin/python benchmarks/campaign.py
	@.venv/bin/python benchmarks/two_stage.py
	@.venv/bin/python benchmarks/rigid_jobs.py
	@.venv/bin/python benchmarks/parallel_event.py
	@.venv/bin/python benchmarks/utility_trial.py

wheels: ## build gridsched's wheel and SimGrid wheels of 2 MB into dist/ and try them; PYTHONS="python3.12 ..."
	@echo "make wheels: sets up .venv where needed, then builds into dist/ and tries the wheels in fresh"
	@echo "environments (2 minutes for each Python, 6 more where SimGrid must be compiled)."
	@scripts/set_up.sh
	@scripts/build_wheels.sh

docs: ## build the site of the documents: site/index.html (its own .venv-docs, a minute the first time)
	@scripts/build_documents.sh

clean: ## remove what the commands made, except .venv
	rm -f gridsched/_loops_*.so
	rm -rf demo site build dist .pytest_cache .ruff_cache .mypy_cache .import_linter_cache .hypothesis .coverage htmlcov
	find . -path ./.venv -prune -o -type d -name __pycache__ -exec rm -rf {} +
