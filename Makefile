# Every target makes its own virtual environment in .venv; PYTHON chooses the interpreter.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check -qq
OUT    ?= demo-output

.DEFAULT_GOAL := help
.PHONY: help demo test test-all lint format wheel docs notebooks clean

help: ## print what each target does
	@echo "make TARGET [PYTHON=python3.12]"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)$$/  \1|\2/p' Makefile | awk -F'|' '{printf "%-12s %s\n", $$1, $$2}'

demo: $(VENV)/.ready-run ## run the demonstration and write it to demo-output
	$(BIN)/python -m dmkc demo --out $(OUT)

test: lint ## lint and run the quick tests
	$(BIN)/python -m pytest -m "not slow" -n 2 --dist loadfile

test-all: $(VENV)/.ready-test ## run the slow tests
	$(BIN)/python -m pytest -m slow

lint: $(VENV)/.ready-test ## check style, format, types and what may import what
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache --no-logo

format: $(VENV)/.ready-test ## rewrite the files in the project's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Files that were removed from the package would come back from an old build folder.
wheel: $(VENV)/.ready-test ## build a wheel in the folder dist
	rm -rf build
	$(PIP) wheel --no-deps --no-build-isolation --wheel-dir dist .
	@ls dist/*.whl

docs: $(VENV)/.ready-docs ## build the documentation as a site in the folder site
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "Open site/index.html"

notebooks: $(VENV)/.ready-test ## run the notebooks and write their outputs into them
	$(BIN)/python notebooks/run.py

clean: ## remove the virtual environment, caches and outputs
	rm -rf $(VENV) $(OUT) site .cache build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { \
	  echo "error: $(PYTHON) was not found; install Python 3.11 or newer, or name one with PYTHON=..." >&2; \
	  exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "error: $(PYTHON) is older than Python 3.11; name a newer one with make PYTHON=python3.11" >&2; \
	  exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
	  echo "error: $(PYTHON) cannot make virtual environments; on Debian and Ubuntu run: apt-get install python3-venv" >&2; \
	  exit 1; }
	@echo "Making the virtual environment $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.ready-run: pyproject.toml | $(BIN)/python
	@echo "Installing dmkc and its dependencies into $(VENV) (a few minutes the first time) ..."
	@$(PIP) install -e .
	@touch $@

# The test environment contains the run environment, so one install serves both.
$(VENV)/.ready-test: pyproject.toml | $(BIN)/python
	@echo "Installing dmkc, its dependencies and the test tools into $(VENV) (a few minutes the first time) ..."
	@$(PIP) install -e ".[test]"
	@touch $(VENV)/.ready-run $@

$(VENV)/.ready-docs: pyproject.toml | $(BIN)/python
	@echo "Installing dmkc and the tools of the documentation into $(VENV) ..."
	@$(PIP) install -e ".[docs]"
	@touch $(VENV)/.ready-run $@
