# Every target does all its own set-up in .venv; only Python 3.11 or newer is needed.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
JOBS   ?= 3

.PHONY: install check quick test docs wheels demo clean

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Roundelay needs Python 3.11 or newer; name one with: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 2; }
	@echo "setting up $(VENV) (once: a minute or two, and 1.5 GB of packages to fetch and unpack)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# What needs neither many seeds, nor real processes, nor Spark; tests/README.md says how long.
quick: $(STAMP)
	$(BIN)/pytest -q -n $(JOBS) --dist worksteal tests/unit tests/scenarios tests/bugs tests/tidy

test: $(STAMP)
	$(BIN)/pytest -n $(JOBS) --dist worksteal

# The quick tests on the built wheel, under each of Python 3.11 to 3.13 that is here.
wheels: $(STAMP)
	@$(BIN)/python scripts/wheels.py --jobs $(JOBS)

# A site of static pages, from docs/ and the docstrings; fails on a link that leads nowhere.
docs: $(STAMP)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "open out/site/index.html"

demo: $(STAMP)
	@$(BIN)/roundelay demo

clean:
	rm -rf $(VENV) out build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
