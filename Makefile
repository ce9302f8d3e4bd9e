# make test   style, types and the default tests, in a virtual environment of its own
# CI=true     adds the slow tests, and a missing Debian package becomes a failure
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: test lint runbook clean

test: $(VENV)/.installed
	@CI="$(CI)" $(BIN)/python tests/make_test.py

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $@

lint: $(VENV)/.installed
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

# runbook.md is assembled from the checks' own docstrings, causes and remedies.
runbook: $(VENV)/.installed
	$(BIN)/python -m commcheck.runbook > runbook.md.new && mv runbook.md.new runbook.md

clean:
	rm -rf $(VENV) dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
