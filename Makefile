# make demo   a simulated fleet with two faults: what commcheck finds, without a cluster
# make test   style, types and the default tests, in a virtual environment of its own
# CI=true     adds the slow tests, and a missing Debian package becomes a failure
# make soak   the tests that take many minutes: kills at random moments, over and over
# make bench  the same work by commcheck and by its peers, measured
# make runbook, handbook                      what is written from the code
# make lock, audit, sbom, coverage, mutants   upkeep
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
REPORTS ?= reports

.PHONY: demo test soak bench lint runbook handbook lock audit sbom coverage mutants clean

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

PIP := python -m pip install --quiet --disable-pip-version-check

$(VENV)/.installed: pyproject.toml tests/requirements.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/$(PIP) --require-hashes --requirement tests/requirements.txt
	$(BIN)/$(PIP) --no-deps --editable .
	@touch $@

# FUZZ_S: seconds of each of the three searches for bytes that nothing can take.
SEEDS ?= 20
FUZZ_S ?= 600
soak: $(VENV)/.installed
	$(BIN)/$(PIP) --editable '.[fuzz]'
	@$(BIN)/pytest -m soak -n 0
	@COMMCHECK_SOAK=$(SEEDS) FUZZ_S=$(FUZZ_S) $(BIN)/pytest -n 0 tests/chaos

# commcheck beside its peers, in one table: benchmarks/RESULTS.md. On an idle machine.
bench: $(VENV)/.installed
	@$(BIN)/python -m benchmarks --write

lint: $(VENV)/.installed
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

# The runbook, in both languages, is assembled from the checks' own docstrings, causes and remedies.
runbook: $(VENV)/.installed
	$(BIN)/python -m commcheck.runbook > runbook.md.new && mv runbook.md.new runbook.md
	$(BIN)/python -m commcheck.runbook zh > runbook.md.new && mv runbook.md.new runbook.zh.md

# The tables of docs/: variables, thresholds, what runs as root.
handbook: $(VENV)/.installed
	for page in variables thresholds root; do \
	  $(BIN)/python -m commcheck.handbook $$page > docs/page.new && \
	  mv docs/page.new docs/$$page.md || exit 1; done

# --- upkeep: tools of a virtual environment of their own ----------------------------------------

UPKEEP := $(VENV)/upkeep/bin

$(VENV)/.upkeep: pyproject.toml
	$(PYTHON) -m venv $(VENV)/upkeep
	$(UPKEEP)/$(PIP) --editable '.[test,upkeep]'
	@touch $@

# What the tests install, pinned with hashes. After a change of pyproject.toml, and now and then.
lock: $(VENV)/.upkeep
	$(UPKEEP)/uv pip compile --quiet --universal --python-version 3.11 --extra test --upgrade \
	  --generate-hashes --custom-compile-command 'make lock' -o tests/requirements.txt pyproject.toml

# Known vulnerabilities of what is pinned.
audit: $(VENV)/.upkeep
	$(UPKEEP)/pip-audit --disable-pip --require-hashes --requirement tests/requirements.txt

# The bill of materials of an installation, CycloneDX: dist/commcheck.cdx.json.
sbom: $(VENV)/.upkeep
	rm -rf dist/sbom
	$(UPKEEP)/uv venv --quiet dist/sbom
	$(UPKEEP)/uv pip install --quiet --python dist/sbom --constraints tests/requirements.txt .
	$(UPKEEP)/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible \
	  --output-file dist/commcheck.cdx.json dist/sbom

# Lines and branches that the default tests run, by package; those of started processes count too.
coverage: $(VENV)/.upkeep
	$(UPKEEP)/coverage erase
	$(UPKEEP)/coverage run -m pytest -q -n 0 -m 'not slow and not soak' $(TESTS)
	$(UPKEEP)/coverage combine --quiet
	$(UPKEEP)/python tests/coverage_table.py

# Mutants of the judge that its tests do not notice. One module and its tests at a time.
MODULE ?= src/commcheck/judge.py
TESTS ?= tests
mutants: $(VENV)/.upkeep
	$(UPKEEP)/python tests/mutants.py $(MODULE) $(TESTS)

clean:
	rm -rf $(VENV) dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
