# make demo   a simulated fleet with two faults: what commcheck finds, without a cluster
# make test   style, types and the default tests, in a virtual environment of its own
# CI=true     adds the slow tests, and a missing Debian package becomes a failure
# make soak   the tests that take many minutes: kills at random moments, over and over
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
REPORTS ?= reports

.PHONY: demo test soak lint runbook clean

# The faults are there on purpose: commcheck ends with 1, and this target with 0 where it does.
demo: $(VENV)/.demo
	@echo 'Twelve simulated hosts. Broken on purpose: PFC is off on gpu-03, the MTU is 1500 on gpu-07.'
	@echo '$$ commcheck demo --hosts 12 --fault pfc-off@gpu-03 --fault mtu-1500@gpu-07'
	@$(BIN)/commcheck demo --hosts 12 --fault pfc-off@gpu-03 --fault mtu-1500@gpu-07 \
	  --out $(REPORTS); code=$$?; echo; \
	  echo "commcheck ended with exit code $$code; 1 is right here: something is proven wrong."; \
	  echo "Open the report: $(REPORTS)/latest/report.html"; test $$code = 1

$(VENV)/.demo: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

test: $(VENV)/.installed
	@CI="$(CI)" $(BIN)/python tests/make_test.py

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $@

soak: $(VENV)/.installed
	@$(BIN)/pytest -m soak -n 0

lint: $(VENV)/.installed
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

# runbook.md is assembled from the checks' own docstrings, causes and remedies.
runbook: $(VENV)/.installed
	$(BIN)/python -m commcheck.runbook > runbook.md.new && mv runbook.md.new runbook.md

clean:
	rm -rf $(VENV) dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
