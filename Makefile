# Every target works from a clean checkout with Python 3.11+ and make; the first one sets up .venv.
PYTHON ?= python3
BIN := .venv/bin
# Folders and files that a step checks, where they exist.
SOURCES := $(wildcard argus tests property_tests benchmarks examples conftest.py)

# Hundreds of tests start processes of their own: what these import is compiled once, not each time.
unexport PYTHONDONTWRITEBYTECODE

# With the space for new objects that Node has by default, its collector takes a tenth of the time.
TYPES := NODE_OPTIONS=--max-semi-space-size=128 $(BIN)/pyright

# Strict: a broken link, or a page without a place in mkdocs.yml, is an error. Not with --quiet, which keeps warnings
# from --strict.
SITE := NO_MKDOCS_2_WARNING=1 DISABLE_MKDOCS_2_WARNING=true $(BIN)/python -m mkdocs build --strict

# One more than there are processors: some tests wait for processes that they have started.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)')

.PHONY: demo test test-all test-every check docs fuzz golden format clean
.DEFAULT_GOAL := test

demo: .venv/.stamp
	@$(BIN)/python -m argus demo

# The default tier; CONTRIBUTING.md says what it leaves to `test-all`, and that to `test-every`. In a new checkout one
# process compiles the tests and what they import ahead of the workers, each of which would compile all of it.
test: TIER := default
test-all: TIER := all
test-every: TIER := every
test test-all test-every: .venv/.stamp
	@echo "[1/5] pyright (strict) and the site, beside the others"; $(TYPES) > .venv/pyright.txt 2>&1 & types=$$!; \
	$(SITE) > .venv/site.txt 2>&1 & site=$$!; \
	trap 'kill $$types $$site 2>/dev/null || true' EXIT; trap 'exit 130' INT TERM; set -e; \
	echo "[2/5] ruff check"; $(BIN)/ruff check $(SOURCES); \
	echo "[3/5] ruff format --check"; $(BIN)/ruff format --check $(SOURCES); \
	echo "[4/5] import contracts"; $(BIN)/lint-imports; \
	echo "[5/5] pytest, tier $(TIER)"; tests=0; \
	[ -d tests/core/__pycache__ ] || $(BIN)/python -m pytest --collect-only -qq --tier $(TIER) > .venv/collected.txt || true; \
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --tier $(TIER) || tests=$$?; \
	wait $$types || { tail -n 200 .venv/pyright.txt; tests=1; }; \
	wait $$site || { tail -n 50 .venv/site.txt; tests=1; }; exit $$tests

check: test

# The documentation site alone, into build/site.
docs: .venv/.docs
	@$(SITE)
	@echo "build/site/index.html; with search: $(BIN)/python -m http.server -d build/site"

# Endless search with fresh seeds. A find is kept in .hypothesis and comes first in the next search;
# it becomes an `@example` or a file in tests/corpus, which `make test` repeats for ever.
fuzz: .venv/.stamp
	@while $(BIN)/python -m pytest -q --hypothesis-profile=fuzz property_tests; do echo "nothing found; again"; done

# Rewrites the expected texts in tests/golden and tests/corpus: read the diff before you commit it.
golden: .venv/.stamp
	@$(BIN)/python -m pytest -q --tier every tests --update-golden

format: .venv/.stamp
	@$(BIN)/ruff check --fix $(SOURCES)
	@$(BIN)/ruff format $(SOURCES)

clean:
	rm -rf .venv build dist *.egg-info .pytest_cache .ruff_cache .hypothesis .import_linter_cache .grimp_cache
	find argus $(wildcard tests property_tests benchmarks examples) -name __pycache__ -type d -prune -exec rm -rf {} +

# Half of the 12,600 modules that it installs are never imported: each is compiled once it is, and not here one by one.
.venv/.stamp: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Argus needs Python 3.11 or later: make PYTHON=/path/to/python3.11"; exit 1; }
	@echo "setting up .venv (once; about 2.2 GB with the solvers, the compilers and torch for CPUs)"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --disable-pip-version-check --quiet --no-compile --progress-bar on -e '.[dev,docs,gfx942,sm90a,sentryward]'
	@touch $@ .venv/.docs

# What the site needs, into the same .venv, without compilers and torch.
.venv/.docs: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --disable-pip-version-check --quiet --progress-bar on -e '.[docs]'
	@touch $@
