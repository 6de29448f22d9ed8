# Four targets do everything on a fresh machine: `make demo`, `make test`, `make test-postgres` and `make test-system`.
PYTHON ?= python3
BIN := .venv/bin
VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null)
# .venv has the packages of the service. Every target but `demo` adds the tools of the tests.
SERVICE := .venv/.service-$(VERSION)
READY := .venv/.ready-$(VERSION)

# The folders of the tests that run on both engines.
ON_BOTH := tests/api tests/areas tests/console

CHECKS := $(BIN)/ruff check src tests grafana docs && $(BIN)/ruff format --check src tests grafana docs && \
	$(BIN)/lint-imports --no-logo && $(BIN)/codespell src tests grafana docs *.md

# The files with tests that measure time.
TIMED = $(shell grep -rl --include='test_*.py' 'mark\.serial' tests)

# Compiled files are kept, whatever the environment says: the tests start hundreds of processes.
unexport PYTHONDONTWRITEBYTECODE

# The tools that look at what is shipped, in an environment of their own.
SUPPLY := build/supply/.ready

.PHONY: demo test test-postgres test-system test-lowest dist sbom audit bench explore week fuzz soak mutate lint docs deb deb-agent lock peers peers-system clean

demo: $(SERVICE)
	$(BIN)/sallyport demo $(if $(ONCE),--once)

# Tests that measure time run alone, before the others. Half of the time of the others is waiting, so that two processors
# run four files side by side, and mypy beside them. Exit status 5: ARGS selects no test of that kind. Beside the quick
# linters, the tests are collected once: this writes their compiled files, which all later processes read.
test: $(READY) peers
	@$(BIN)/pytest --quiet --collect-only >/dev/null 2>&1 & \
	$(CHECKS); checked=$$?; wait; [ $$checked = 0 ] || exit 1; \
	$(BIN)/pytest -m 'serial and not system' $(or $(ARGS),$(TIMED)); timed=$$?; \
	mkdir -p build; $(BIN)/mypy >build/mypy.log 2>&1 & types=$$!; \
	$(BIN)/pytest -n 4 -m 'not serial and not system' $(ARGS); others=$$?; \
	wait $$types; typed=$$?; cat build/mypy.log; \
	case $$typed,$$others,$$timed in 0,0,0|0,0,5|0,5,0) ;; *) exit 1 ;; esac

# The tests that use the store, over PostgreSQL; `make test` runs the contract of the store on both engines.
test-postgres: $(READY) peers
	SALLYPORT_TEST_ENGINE=postgres $(BIN)/pytest -n 3 -m 'not serial and not system' $(or $(ARGS),$(ON_BOTH))

# Tests that need whole installations (an Active Directory domain, a Debian, other packages, other Pythons, clusters), and
# long ones: full and failing disks, a crash at each step of a removal, a browser on every page, the larger benchmarks.
test-system: $(READY) peers-system
	$(BIN)/pytest -n 3 -m system $(ARGS)

# The tests with the lowest versions that pyproject.toml accepts, in an environment of their own; needs uv on the path.
LOWEST := build/lowest
test-lowest: peers
	uv venv --quiet --clear --python $(PYTHON) $(LOWEST)
	uv pip install --quiet --python $(LOWEST) --no-deps -r tests/requirements.lock
	uv pip compile --quiet --resolution lowest-direct --python-version 3.11 --extra postgres --extra otel pyproject.toml | \
		uv pip install --quiet --python $(LOWEST) --no-deps -r -
	uv pip install --quiet --python $(LOWEST) --no-deps --no-build-isolation --editable .
	$(LOWEST)/bin/python -m pytest -n 3 -m 'not serial and not system' $(ARGS)

# The wheel and the source distribution in dist/: checked, installed into an empty environment, and logged in through.
dist: $(READY)
	$(BIN)/python -m tests.deploy.distribution dist

# What the wheel, the Debian packages and the image contain, as CycloneDX files in dist/.
sbom: $(READY) $(SUPPLY)
	$(BIN)/python -m tests.deploy.sbom dist build/supply/bin/cyclonedx-py

# Whether a locked version has a known vulnerability. Where the database cannot be reached, it says so and succeeds.
audit: $(READY) $(SUPPLY)
	$(BIN)/python -m tests.deploy.audit build/supply/bin/pip-audit

lint: $(READY)
	$(CHECKS) && $(BIN)/mypy

docs: $(READY)
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs build/docs

# Measures this checkout beside its peers, and writes the pages of the results; with QUICK=1, only beside the commit
# before, in three minutes.
bench: $(READY) $(if $(QUICK),,peers)
	$(BIN)/python -m tests.bench $(if $(QUICK),quick,--write docs/benchmarks) $(ARGS)

# Runs every order of the second factor's transactions over several nodes. ARGS: instances, and `--states N`.
explore: $(READY)
	$(BIN)/python -m tests.explore $(ARGS)

# Runs the whole service in simulated time for DAYS (7). SEED selects the hours of what happens; ENGINE is sqlite or postgres.
week: $(READY)
	SALLYPORT_TEST_ENGINE=$(or $(ENGINE),sqlite) $(BIN)/python -m tests.service.week --days $(or $(DAYS),7) $(if $(SEED),--seed $(SEED))

# Breaks an installation under load for HOURS (1), and checks what its clients receive: docs/architecture/soak.md.
# SEED repeats the schedule of a campaign; ENGINE is sqlite or postgres.
soak: $(READY) peers
	$(BIN)/python -m tests.soak --hours $(or $(HOURS),1) --engine $(or $(ENGINE),sqlite) $(if $(SEED),--seed $(SEED)) $(ARGS)

# The tests of an AREA against mutants: faults in its source, one at a time (tests/mutants). An interrupted run continues.
mutate: $(READY)
	$(BIN)/python -m tests.mutants $(AREA) $(ARGS)

# Gives the parsers inputs that reach new code, for MINUTES (10) in all. ARGS: targets of tests/fuzz, and `--seed N`.
fuzz: .venv/.fuzz
	$(BIN)/python -m tests.fuzz --minutes $(or $(MINUTES),10) $(ARGS)

.venv/.fuzz: tests/fuzz/requirements.lock | $(READY)
	@$(BIN)/python -m pip install --disable-pip-version-check --quiet --require-hashes -r $<
	@touch $@

# The real programs of the other end: installed by root, named and skipped for anyone else.
peers:
	@tests/peers/install

# Those of the system tests as well.
peers-system:
	@tests/peers/install system

$(SERVICE): requirements.lock pyproject.toml tests/setup
	@tests/setup $(PYTHON) service
	@touch $@

$(READY): $(SERVICE) tests/requirements.lock
	@tests/setup $(PYTHON)
	@touch $@

$(SUPPLY): tests/deploy/requirements.lock
	@rm -rf build/supply
	@$(PYTHON) -m venv build/supply
	@build/supply/bin/python -m pip install --disable-pip-version-check --quiet --require-hashes -r $<
	@touch $@

# The Debian packages, for the release of Debian that builds them, in dist/: the service, and the agents alone.
deb:
	@src/sallyport/deploy/debian/build-package
deb-agent:
	@src/sallyport/deploy/debian/build-package agent

# Pins every version with hashes; needs uv on the path. requirements.lock has what an installation takes, with what
# builds it; tests/requirements.lock the tools of the tests as well. The extra `postgres`, the agents alone, and the
# tools of `make sbom`, `make audit` and `make fuzz` have files of their own.
COMPILE := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--no-emit-find-links --no-header --no-annotate
lock:
	$(COMPILE) --upgrade --group dev pyproject.toml -o tests/requirements.lock
	$(COMPILE) --constraints tests/requirements.lock --group build pyproject.toml -o requirements.lock
	sed -n 's/^postgres = \["\(.*\)"\].*/\1/p' pyproject.toml | \
		$(COMPILE) --constraints tests/requirements.lock - -o requirements-postgres.lock
	sed -n 's/^otel = \["\(.*\)"\].*/\1/p' pyproject.toml | \
		$(COMPILE) --constraints tests/requirements.lock - -o requirements-otel.lock
	{ sed -n '/^\(dependencies\|directory\) = /,/^]/s/^    "\(.*\)",.*/\1/p' pyproject-agent.toml; echo hatchling; } | \
		$(COMPILE) --constraints tests/requirements.lock - -o requirements-agent.lock
	$(COMPILE) --upgrade --group pyproject.toml:supply -o tests/deploy/requirements.lock
	$(COMPILE) --upgrade --group pyproject.toml:fuzz -o tests/fuzz/requirements.lock

# Removes what the other targets have made. A data directory is not among them: only `sallyport server uninstall --purge`
# removes data.
clean:
	rm -rf .venv build
