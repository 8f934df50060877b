# make setup   .venv with anygiven importable and on .venv/bin
# make demo    the main job on an embedded table, in about a minute
# make test    lint, types, import direction, tests
PYTHON ?= python3
BIN := .venv/bin
# One thread each: two test processes on two cores must not fight over them.
export OMP_NUM_THREADS ?= 1

.PHONY: setup demo test lint clean
.DEFAULT_GOAL := help

help:
	@head -4 Makefile | sed 's/^# //'

setup: .venv/.ready

.venv/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: setup
	$(BIN)/anygiven demo

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/pyright

test: lint
	$(BIN)/python -m pytest -n 2 --dist worksteal

clean:
	rm -rf .venv build dist anygiven-demo
