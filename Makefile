# Each target makes its own environment on a machine that has only python3 (3.11 or newer) and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
OUT ?= demo-run

TRAINERS ?= .venv-trainers
REAL ?= .venv-real
RAY ?= .venv-ray

.PHONY: venv demo test check docs docs-serve dist test-wheel bench bench-peers trainers test-trainers test-real test-ray simulate crash clean
.DEFAULT_GOAL := help

help:
	@echo "make venv    install eyas into .venv, with what the demo needs"
	@echo "make demo    the whole way against the built-in simulator: no key, no network after installation"
	@echo "make test    all tests (no network, no key), four at a time; JOBS=1: one by one"
	@echo "make check   lint and strict types"
	@echo "make docs    the documentation as HTML in site/, which opens without a network; fails on any warning"
	@echo "make docs-serve   the same, then at http://127.0.0.1:8010/ until ^C"
	@echo "make dist    the wheel and the sdist of this commit, in dist/, checked"
	@echo "make test-wheel   installs both as a stranger would, on each Python found, and runs the demo: 5 minutes"
	@echo "make bench   timing figures of this machine"
	@echo "make bench-peers   eyas beside other tools against a load server: hours (gcc, OpenSSL headers, network for pip)"
	@echo "make simulate   a thousand runs in simulated time, and the state machines in full"
	@echo "make crash   more than 200 crash points of the real binary (root, strace, mkfs.ext4, loop devices)"
	@echo "make trainers   install SpecForge and speculators for CPUs into .venv-trainers: 1.7 GB"
	@echo "make test-trainers   SpecForge and speculators read the rows, a head learns: 1.7 GB, 6 minutes"
	@echo "make test-ray    a run over a Ray cluster of four nodes on this machine: 0.3 GB, 17 minutes"
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

$(VENV)/.dist: pyproject.toml $(BIN)/python
	$(BIN)/python -m pip install --quiet --group dist
	@touch $@

$(VENV)/.docs: pyproject.toml $(VENV)/.demo
	$(BIN)/python -m pip install --quiet --group docs
	@touch $@

venv: $(VENV)/.demo

demo: $(VENV)/.demo
	$(BIN)/eyas demo --out $(OUT)

JOBS ?= 4
test: $(VENV)/.test
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder

check: $(VENV)/.check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

docs: $(VENV)/.docs
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --fresh-env --quiet docs site
	@echo "open site/index.html"

docs-serve: docs
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory site 8010

dist: $(VENV)/.dist
	rm -f dist/eyas-*.whl dist/eyas-*.tar.gz
	$(BIN)/python -m build --outdir dist
	$(BIN)/twine check --strict dist/eyas-*
	$(BIN)/check-wheel-contents dist/eyas-*.whl

PYTHONS ?=
WHEEL ?= --full
test-wheel: dist
	$(BIN)/python release/wheel.py --dist dist $(WHEEL) $(PYTHONS:%=--python %)

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

trainers: $(TRAINERS)/.done

test-trainers: $(VENV)/.demo $(TRAINERS)/.done
	sh trainers/run.sh $(BIN)/eyas $(TRAINERS)/bin/python

$(REAL)/.done: pyproject.toml tests_real/requirements.txt tests_real/no-deps.txt
	$(PYTHON) -m venv $(REAL)
	$(REAL)/bin/python -m pip install --quiet --editable '.[tokenizers]' -r tests_real/requirements.txt
	$(REAL)/bin/python -m pip install --quiet --no-deps -r tests_real/no-deps.txt
	@touch $@

test-real: $(REAL)/.done
	$(REAL)/bin/python -m pytest tests_real

$(RAY)/.done: pyproject.toml
	$(PYTHON) -m venv $(RAY)
	$(RAY)/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(RAY)/bin/python -m pip install --quiet --editable '.[demo,ray]' 'pytest>=8.3' 'pytest-timeout>=2.3' 'hypothesis>=6.130'
	@touch $@

test-ray: $(RAY)/.done
	$(RAY)/bin/python -m pytest tests_ray --timeout 900

simulate: $(VENV)/.test
	$(BIN)/python bench/simulate.py
	EYAS_FULL=1 $(BIN)/python -m pytest tests/test_ledger_machine.py --timeout 3600

crash: $(VENV)/.test
	$(BIN)/python bench/crash.py

clean:
	rm -rf $(VENV) $(TRAINERS) $(REAL) $(RAY) demo-run dist site .pytest_cache .ruff_cache .hypothesis
