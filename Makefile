# `make help` lists the targets. Every target that needs the environment makes it first; a second time costs nothing.

BIN := .venv/bin
INSTALLED := .venv/.installed
CONFIG ?= examples/demo/holdfast.yaml
PYTEST_ARGS ?=
MINUTES ?= 30

ifdef PYTHON
export PYTHON
endif

.DEFAULT_GOAL := help
.PHONY: help install run test check format screenshots bench bench-quick bench-console bench-chains growth flame soak docs lock clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

install: $(INSTALLED)  ## make .venv with the holdfast command, exactly as locked

# An environment whose Python is gone or too old is made anew; a good one is brought in line with the lock.
$(INSTALLED): pyproject.toml requirements.lock .ci/uv
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || .ci/uv venv --quiet --clear .venv
	.ci/uv pip sync --quiet --compile-bytecode --python $(BIN)/python --require-hashes requirements.lock
	.ci/uv pip install --quiet --python $(BIN)/python --no-deps --editable . --editable ./faults
	@touch $@

run: install  ## serve the demo (CONFIG=file serves another)
	$(BIN)/holdfast serve --config $(CONFIG)

# The tests start some hundreds of processes: each would compile what it imports where nothing may write bytecode.
test: install  ## run the tests (PYTEST_ARGS="-k claim" chooses)
	$(BIN)/python -m compileall -q src faults/src tests
	$(BIN)/python -m pytest -n 3 --dist worksteal $(PYTEST_ARGS)

check: install  ## format, lint, types, import rules
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: install  ## put the code in shape
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

OUT ?= screenshots
screenshots: install  ## write a picture of every page of the console (OUT=folder)
	$(BIN)/python -m tests.browser.screenshots $(OUT)

# The figures of the docs come from what these keep in bench/results: `make docs` puts them there.
bench: install  ## measure Holdfast beside other gateways: a quarter of an hour
	$(BIN)/python -m bench.gateways
	$(BIN)/python -m bench.parts --seconds 2 --rounds 5
	$(BIN)/python -m bench

bench-quick: install  ## measure Holdfast alone, and where its microseconds go: two minutes
	$(BIN)/python -m bench.gateways --quick
	$(BIN)/python -m bench.parts --keep parts-quick

bench-console: install  ## measure every page of the console with 100,000 recorded calls
	$(BIN)/python -m bench.console

bench-chains: install  ## measure what a step of a chain costs beside a bare step of DBOS
	$(BIN)/python -m bench.chains

growth: install  ## measure what a call costs when tools, policies, records or claims have grown
	$(BIN)/python -m bench.growth

flame: install  ## draw where a served gateway spends its time: bench/results/flame.svg
	$(BIN)/python -m bench.flame

soak: install  ## run the long tests: storms, kills, stopped workers, half an hour of memory
	$(BIN)/python -m pytest -m soak $(PYTEST_ARGS) -o faulthandler_timeout=600
	$(BIN)/python -m bench.memory --minutes $(MINUTES)

# uv.lock stays out of the tree: it names the registry host it was made with.
lock:  ## resolve the dependencies anew into requirements.lock
	.ci/uv lock --upgrade
	.ci/uv export --quiet --frozen --format requirements.txt --no-emit-project --all-groups --all-extras \
		--no-annotate --no-header --output-file requirements.lock

docs: install  ## write the pages that are made from code, and the figures from bench/results
	$(BIN)/python -m tests.docs.generate
	$(BIN)/python -m bench.figures

clean:  ## remove the environment and every cache
	rm -rf .venv .uv .peers build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests bench examples faults -name __pycache__ -type d -prune -exec rm -rf {} +
