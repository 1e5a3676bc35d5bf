# outspoken: `make run` starts it, `make test` proves it. Everything lives in .venv; nothing is installed elsewhere.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# pip must take exactly what the lock names, whatever the machine's own pip settings add.
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet
# Most tests wait, three seconds each: with fewer at a time the processors would wait as well. How many compute at a time is no matter of this
# (tests/together.py).
WORKERS ?= 20
# Where this is set, each of the many processes that the tests start would compile everything anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help

.PHONY: help
help: ## show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 18

.PHONY: python-check
python-check:
	@command -v $(PYTHON) >/dev/null || { echo "outspoken needs Python 3.11 or newer, and '$(PYTHON)' was not found. Install it, or say where it is: make PYTHON=/path/to/python3 run"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "outspoken needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Say which one to use: make PYTHON=python3.12 run"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "This Python cannot make virtual environments. On Debian and Ubuntu: apt install python3-venv"; exit 1; }

$(VENV)/.run-ready: requirements.lock pyproject.toml | python-check
	@test -x $(BIN)/python || { echo "Making .venv (once) ..."; $(PYTHON) -m venv $(VENV); }
	@$(BIN)/python deploy/install.py requirements-pip.lock requirements.lock
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.test-ready: requirements-dev.lock $(VENV)/.run-ready
	@echo "Adding the test tools to .venv (once) ..."
	@$(BIN)/python deploy/install.py requirements-dev.lock
	@touch $@

# Programs of others, which the tests run against the gateway: what they need is not what we need.
$(VENV)/clients/.ready: requirements-clients.lock | $(VENV)/.test-ready
	@echo "Setting up .venv/clients (once) ..."
	@test -x $(VENV)/clients/bin/python || $(BIN)/python -m venv $(VENV)/clients
	@$(VENV)/clients/bin/python -m pip --disable-pip-version-check --quiet install --no-compile --no-deps --require-hashes -r requirements-clients.lock
	@touch $@

# Sentences in other languages, compiled anew where a catalogue is newer.
$(VENV)/.words-ready: $(wildcard agent_core/languages/*.po) hatch_build.py $(VENV)/.run-ready
	@$(BIN)/python hatch_build.py
	@touch $@

.PHONY: run
run: $(VENV)/.run-ready $(VENV)/.words-ready ## start the daemon with the web chat on http://127.0.0.1:8787
	@exec $(BIN)/outspoken run

.PHONY: chat
chat: $(VENV)/.run-ready $(VENV)/.words-ready ## talk to it in this terminal
	@exec $(BIN)/outspoken chat

.PHONY: setup
setup: $(VENV)/.test-ready $(VENV)/clients/.ready ## prepare .venv with everything that the tests need

.PHONY: format
format: $(VENV)/.test-ready ## format and mend what can be mended
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

.PHONY: lint
lint: style types ## formatter, linter and type checker, changing nothing

.PHONY: style
style: $(VENV)/.test-ready
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .

.PHONY: types
types: $(VENV)/.test-ready
	@mkdir -p build
	@nice -n 10 $(BIN)/pyright --warnings > build/types.log || { cat build/types.log; exit 1; }
	@tail -n 1 build/types.log

.PHONY: tests
tests: $(VENV)/.test-ready $(VENV)/clients/.ready
	@bash tests/browser-check.sh
	@bash tests/prometheus-check.sh
	@bash tests/sandbox-check.sh
	@$(BIN)/pytest --processes $(WORKERS) --again 30

# The types are looked at while tests wait.
.PHONY: test
test: $(VENV)/.test-ready ## formatter, linter, type checker and all tests
	@$(MAKE) --no-print-directory style
	@rm -f build/types.log
	@$(MAKE) --no-print-directory -j2 types tests || { echo; echo "make test failed. The type checker said:"; cat build/types.log; exit 1; }

.PHONY: soak
soak: $(VENV)/.test-ready $(VENV)/clients/.ready ## the long proofs: simulation, exploration, kills, fuzzing, power cuts, deployment
	@$(PIP) install --only-binary :all: 'atheris>=3' || echo "No atheris for this Python: the fuzzing will say so."
	@bash tests/prometheus-check.sh
	@bash tests/sandbox-check.sh
	@$(BIN)/python -m tests.soak

SEED ?= 1
COUNT ?= 40
.PHONY: mutants
mutants: $(VENV)/.test-ready ## make COUNT mistakes drawn by SEED, and see which the tests let through; writes docs/mutants.md
	@nice -n 15 $(BIN)/python -m tests.mutants.run --seed $(SEED) --count $(COUNT) --page

.PHONY: bench
bench: $(VENV)/.test-ready ## measure speed and memory beside a reference and other gateways, in ten minutes; writes docs/performance.md
	@$(BIN)/python -m tests.bench.run --rounds 3 --peers build/peers --page

.PHONY: docs
docs: $(VENV)/.test-ready ## build the documentation as a site, into build/site
	@$(BIN)/zensical build --strict
	@echo "Open build/site/index.html"

.PHONY: words
words: $(VENV)/.test-ready ## bring the catalogues of languages up to date with what the source says
	@$(BIN)/python -m tests.catalogues

.PHONY: lock
lock: $(VENV)/.test-ready ## pin the dependencies anew (with hashes; no index host is written)
	@$(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	  --no-emit-index-url --quiet --extra documents --extra postgres --extra otlp --extra mcp --group build -o requirements.lock
	@$(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	  --no-emit-index-url --quiet --all-extras --group test --group docs --group lint --group build --group lock -c requirements.lock -o requirements-dev.lock
	@$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	  --no-emit-index-url --quiet --group pyproject.toml:clients -o requirements-clients.lock
	@$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	  --no-emit-index-url --quiet --group pyproject.toml:installer -o requirements-pip.lock

.PHONY: clean
clean: ## remove .venv and everything that was generated
	@rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis dist build .cache tests/.out
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
