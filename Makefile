# Every target installs what it needs. A machine needs Python 3.11+, Java 17+ and make.

PYTHON ?= python3
UV := .fairlead/uv/bin/uv
BIN := .venv/bin
# Cache compiled modules, even if the environment forbids it: dozens of processes import the same modules.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: install demo dev test test-long test-quick coverage mutants check format bench bench-fleet bench-followers bench-loop bench-racks bench-reaction bench-store dist bom image release jar docs pictures psql lock clean

install: .venv/installed

$(UV):
	@$(PYTHON) -c 'import sys; sys.exit("Fairlead needs Python 3.11 or newer; $(PYTHON) is " + sys.version.split()[0] + ". Name another one: make PYTHON=python3.12 ...") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv .fairlead/uv
	.fairlead/uv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements-uv.lock

.venv/installed: requirements.lock pyproject.toml | $(UV)
	$(UV) venv --quiet --allow-existing --no-python-downloads --python $(PYTHON) .venv
	$(UV) pip sync --quiet --python .venv --require-hashes --compile-bytecode requirements.lock
	$(UV) pip install --quiet --python .venv --no-deps --no-build-isolation --editable .
	$(BIN)/python -m compileall -q assignors assets fairlead fairlead_planner orchestration  # Once, not in each process
	@touch $@

demo: install
	$(BIN)/fairlead demo

dev: install
	$(BIN)/fairlead dev

# Five processes on two cores, because tests mostly wait.
SHARED := --numprocesses 5 --dist loadgroup --no-loadscope-reorder
# On a machine without a browser: make test ALLOW_NO_BROWSER=1
test: install
	@$(BIN)/python -m tests.ui.browser
	$(BIN)/pytest $(SHARED)

# Tests that need no service. About a minute.
QUICK := not kafka and not postgres and not spark and not long
test-quick: install
	$(BIN)/pytest $(SHARED) --numprocesses 2 -m "$(QUICK)"

# The long forms of storms, kills and simulated histories. Hours.
LONG_FORMS = $(shell grep -rlE "import (form|LONG)|mark\.test_long" tests --include='test_*.py')
test-long: install
	FAIRLEAD_TEST_LONG=1 $(BIN)/pytest $(LONG_FORMS)

# Lines and branches that the tests without services do not run.
coverage: install
	$(BIN)/pytest $(SHARED) -m "$(QUICK)" --hypothesis-profile=ci \
		--cov --cov-report=term

# Mutation testing of algorithms and domain: which faults no test notices.
SAMPLE ?= 150
mutants: install
	$(BIN)/python -m tests.mutants --sample $(SAMPLE)

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: install
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.store

bench-followers: install
	$(BIN)/python -m benchmarks.rebalance
	$(BIN)/python -m benchmarks.drain

bench-loop: install
	$(BIN)/python -m benchmarks.loop
	$(BIN)/python -m benchmarks.rolled_back

# Bytes between racks, as brokers count them, with range, sticky, uniform and a plan.
bench-racks: install
	$(BIN)/python -m benchmarks.racks

bench-fleet: install
	$(BIN)/python -m benchmarks.fleet_fetch
	$(BIN)/python -m benchmarks.fleet

# Time from a cause to the plan that removes it. Half an hour on a quiet machine.
bench-reaction: install
	$(BIN)/python -m benchmarks.reaction
	$(BIN)/python -m benchmarks.reaction_chain --rounds 5
	$(BIN)/python -m benchmarks.approval

bench-store: install
	$(BIN)/python -m benchmarks.store

# Needs a running `make dev`.
pictures: install
	FAIRLEAD_TEST_LONG=1 $(BIN)/pytest tests/ui/test_two_people.py
	$(BIN)/python -m tests.ui.pictures

# The wheel and the source distribution; the build needs no network.
dist: install
	rm -rf dist
	$(BIN)/python -m hatchling build -d dist

# A CycloneDX list of the packages and jars in the image and the sandbox, with digests and licences.
bom: install
	@$(BIN)/python -m tests.deploy.bom

# Build and test the image and Compose, with 200 kills. Over an hour; needs podman and buildah.
image: install
	FAIRLEAD_TEST_LONG=1 $(BIN)/pytest -s tests/deploy/test_image.py

# All files of a release: wheel, sdist, bill of materials, jar, chart, checksums.
release: dist jar
	$(MAKE) bom
	cp jvm/build/fairlead-kafka.jar dist/
	tar --create --gzip --dereference --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 \
		--directory deploy --transform 's,^chart,fairlead,' \
		--file "dist/fairlead-chart-$$(sed -n 's/^version: //p' deploy/chart/Chart.yaml).tgz" chart
	cd dist && sha256sum -- * > SHA256SUMS

# What Kafka's own clients and brokers follow plans with. Needs a JDK 17, not only a Java.
jar: install
	@$(BIN)/python -c "from fairlead.sandbox.plugin import plugin_jar; print(plugin_jar())"

docs: install
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet
	@echo "Open .fairlead/site/index.html; for its search: $(BIN)/python -m http.server -d .fairlead/site"

# On the database of fairlead.toml or FAIRLEAD_POSTGRES__URL, else on the sandbox's.
psql: install
	@$(BIN)/fairlead db psql

# Another version of uv: its number is in requirements-uv.lock.
lock: | $(UV)
	grep --only-matching '^uv==[0-9.]*' requirements-uv.lock | $(UV) pip compile --quiet --generate-hashes --no-header --no-annotate - --output-file requirements-uv.lock
	$(UV) pip compile --quiet --universal --generate-hashes --all-extras --group dev --no-header pyproject.toml --output-file requirements.lock

clean:
	@# First end the processes of this checkout, unless its environment is broken.
	-@test ! -x $(BIN)/python || $(BIN)/python -m fairlead.sandbox.ending
	rm -rf .venv .fairlead .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis spark-warehouse
