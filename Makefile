# Everything a newcomer needs: `make demo` and `make test`. Only python3 and make have to be there.
VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
READY := $(VENV)/.ready
export PYTHONDONTWRITEBYTECODE =  # the tests start hundreds of processes: none compiles the library again

FAST := tests/domain tests/policy tests/kinds tests/typing tests/conformance/claims/test_claims.py \
	tests/conformance/claims/test_acknowledge.py tests/worker/execution tests/worker/test_stages.py tests/flows/test_steps.py

.PHONY: demo demo-postgres test test-fast test-pythons check format bench proof lock clean

demo: $(READY)  ## six systems on one SQLite file, and a guided tour; DEMO=--auto goes on by itself
	$(BIN)/python -m perdure_systems.demo $(DEMO)

demo-postgres: $(READY)  ## the same on a PostgreSQL server of its own, with three worker processes
	$(BIN)/python -m perdure_systems.demo --postgres --workers 3 --folder .demo-postgres $(DEMO)

test: $(READY)  ## the tests, on SQLite and PostgreSQL, in four processes: many of them wait more than they work
	$(BIN)/python -m pytest -n 4 --dist worksteal

test-fast: $(READY)  ## while you work, about 40 s of processor time: decisions, claims on SQLite, a slice of worker and flows
	$(BIN)/python -m pytest -n 2 -m 'not slow and not proof' -k 'not postgres' $(FAST)

test-pythons: $(READY)  ## the tests on each other Python that is installed here: 3.12, 3.13, 3.14
	$(BIN)/python tools/pythons.py

check: $(READY)  ## format, lint, types, import contracts, numbered behaviours
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python tools/behaviours.py

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY)  ## the benchmarks, ours and the peers'
	$(BIN)/python -m benchmarks

proof: $(READY)  ## the long fault tests; some take ten minutes, so none has the time limit of the others
	$(BIN)/python -m pytest -m proof -o faulthandler_timeout=0

lock: $(READY)  ## resolve the newest versions of all dependencies anew, with hashes
	$(BIN)/python tools/lock.py

clean:
	rm -rf $(VENV) build dist

$(READY): requirements/dev.txt pyproject.toml systems/pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e . -e systems
	touch $@
