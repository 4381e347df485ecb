# make bench   everything from nothing: environment, install, the main job on this CPU, reports in results/latest
# make test    everything from nothing: lint, types, import rules, all tests
# make overhead  what the suite itself costs, as ratios to hand-written loops in interleaved runs; under ten minutes
# make sessions  what a session costs beside its work: one of one case, one of two, and a search
# make scale   what launching, collecting and reporting cost on up to 1,024 simulated hosts, and on 16 over ssh; a search of
#              100,000 simulated trials on 4,096 workers
# make repeat    whether printed figures are what happened, alone and beside a process that keeps a core busy; RUNS=N of each case
# make fuzz    10,000 damaged inputs of every kind: none ends in a traceback, a hang or more than 200 MB; INPUTS=N of them
# make gate-power  how often the speed gate is wrong, and what it finds; RUNS=N real sessions of each kind
# make mutants   which small changes of the judging modules their unit tests do not see
# make honest    how often the honesty checks accuse honest engines; RUNS=N of each engine

PYTHON ?= python3
INPUTS ?= 10000
BIN := .venv/bin
# thousands of processes import this tree: compiled by each of them, the tests would take an eighth longer
unexport PYTHONDONTWRITEBYTECODE
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: bench test lint docs overhead sessions scale repeat honest fuzz gate-power mutants clean

bench: .venv/.bench
	$(BIN)/python -m pytest suites/inference -k resnet50 \
	  --junitxml=results/junit.xml --alluredir=results/allure --clean-alluredir --benchmark-json=results/benchmark.json
	@echo "open results/latest/report.html"

test: .venv/.test lint
	$(BIN)/python -m tests.unsteady tests -m "not audit and not quiet" -n 4 --dist loadfile --no-loadscope-reorder
	$(BIN)/python -m tests.unsteady $$(grep -rl 'pytest\.mark\.quiet' tests/unit --include='*.py') -m quiet

docs: .venv/bin/python
	$(BIN)/python -m docs.generate

lint: .venv/.test
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

overhead: .venv/.test
	$(BIN)/python -m benchmarks.overhead
	$(BIN)/python -m benchmarks.training

sessions: .venv/.test
	$(BIN)/python -m benchmarks.sessions
	$(BIN)/python -m benchmarks.proposals
	$(BIN)/python -m benchmarks.searching
	$(BIN)/python -m benchmarks.placing

scale: .venv/.test
	$(BIN)/python -m benchmarks.scale.cluster
	$(BIN)/python -m benchmarks.scale.over_ssh
	$(BIN)/python -m benchmarks.scale.search

repeat: .venv/.test
	$(BIN)/python -m benchmarks.repeat $(if $(RUNS),--runs $(RUNS) --trainings $(RUNS))

honest: .venv/.test
	$(BIN)/python -m benchmarks.honest $(if $(RUNS),--runs $(RUNS))

fuzz: .venv/.test
	PROOFMARK_FUZZ=$(INPUTS) $(BIN)/python -m pytest tests/fuzz

gate-power: .venv/.test
	$(BIN)/python -m benchmarks.gate.power $(if $(RUNS),--runs $(RUNS))

mutants: .venv/.test
	$(BIN)/python -m benchmarks.mutants

clean:
	rm -rf .venv results .cache

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/.bench: requirements.txt constraints.txt | .venv/bin/python
	$(INSTALL) -r requirements.txt
	@touch $@

.venv/.test: requirements-dev.txt requirements.txt constraints.txt | .venv/bin/python
	$(INSTALL) -r requirements-dev.txt
	@touch $@
