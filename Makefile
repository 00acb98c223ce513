# Each target makes its own environment on a machine that has only python3 (3.11 or newer) and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
OUT ?= demo-run

.PHONY: demo test check bench clean
.DEFAULT_GOAL := help

help:
	@echo "make demo    the whole way against the built-in simulator: no key, no network after installation"
	@echo "make test    all tests (no network, no key)"
	@echo "make check   lint and strict types"
	@echo "make bench   timing figures of this machine"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "eyas needs Python 3.11 or newer; name one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'

$(VENV)/.demo: pyproject.toml $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[demo]'
	@touch $@

$(VENV)/.test: pyproject.toml $(VENV)/.demo
	$(BIN)/python -m pip install --quiet --group test
	@touch $@

$(VENV)/.check: pyproject.toml $(VENV)/.test
	$(BIN)/python -m pip install --quiet --group check
	@touch $@

demo: $(VENV)/.demo
	$(BIN)/eyas demo --out $(OUT)

test: $(VENV)/.test
	$(BIN)/python -m pytest

check: $(VENV)/.check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

bench: $(VENV)/.test
	$(BIN)/python bench/in_flight.py
	$(BIN)/python bench/kills.py
	$(BIN)/python bench/cap.py
	$(BIN)/python bench/truth.py

clean:
	rm -rf $(VENV) demo-run .pytest_cache .ruff_cache .hypothesis
