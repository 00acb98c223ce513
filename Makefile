# Each target makes its own environment on a machine that has only python3 (3.11 or newer) and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
OUT ?= demo-run

TRAINERS ?= .venv-trainers
REAL ?= .venv-real

.PHONY: demo test check bench bench-peers test-trainers test-real simulate crash clean
.DEFAULT_GOAL := help

help:
	@echo "make demo    the whole way against the built-in simulator: no key, no network after installation"
	@echo "make test    all tests (no network, no key)"
	@echo "make check   lint and strict types"
	@echo "make bench   timing figures of this machine"
	@echo "make bench-peers   eyas beside other tools against a load server: hours (gcc, OpenSSL headers, network for pip)"
	@echo "make simulate   a thousand runs in simulated time, and the state machines in full"
	@echo "make crash   more than 200 crash points of the real binary (root, strace, mkfs.ext4, loop devices)"
	@echo "make test-trainers   SpecForge and speculators read the rows, a head learns: 1.7 GB, 6 minutes"
	@echo "make test-real   a real model behind llama.cpp's server: 0.5 GB, 13 minutes"

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

PEERS ?= peers.json
bench-peers: $(VENV)/.test
	$(BIN)/python bench/peers.py --mode json --out $(PEERS)
	$(BIN)/python bench/peers.py --mode stream --out $(PEERS) --markdown --picture docs/bench.svg

$(TRAINERS)/.done: trainers/requirements.txt trainers/no-deps.txt
	$(PYTHON) -m venv $(TRAINERS)
	$(TRAINERS)/bin/python -m pip install --quiet torch==2.13.0
	$(TRAINERS)/bin/python -m pip install --quiet -r trainers/requirements.txt
	$(TRAINERS)/bin/python -m pip install --quiet --no-deps -r trainers/no-deps.txt
	@touch $@

test-trainers: $(VENV)/.demo $(TRAINERS)/.done
	sh trainers/run.sh $(BIN)/eyas $(TRAINERS)/bin/python

$(REAL)/.done: pyproject.toml tests_real/requirements.txt tests_real/no-deps.txt
	$(PYTHON) -m venv $(REAL)
	$(REAL)/bin/python -m pip install --quiet --editable '.[tokenizers]' -r tests_real/requirements.txt
	$(REAL)/bin/python -m pip install --quiet --no-deps -r tests_real/no-deps.txt
	@touch $@

test-real: $(REAL)/.done
	$(REAL)/bin/python -m pytest tests_real

simulate: $(VENV)/.test
	$(BIN)/python bench/simulate.py
	EYAS_FULL=1 $(BIN)/python -m pytest tests/test_ledger_machine.py --timeout 3600

crash: $(VENV)/.test
	$(BIN)/python bench/crash.py

clean:
	rm -rf $(VENV) $(TRAINERS) $(REAL) demo-run .pytest_cache .ruff_cache .hypothesis
