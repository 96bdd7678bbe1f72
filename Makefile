# Everything a developer does, from a fresh clone with nothing but make and Python:  make demo,  make test,  make check

PYTHON ?= python3.11
VENV ?= .venv
BIN := $(VENV)/bin
# uv installs nine times faster than pip; pip still does it where uv does not know the way to the packages.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# The environment is complete when this file is there. Its name follows from what was installed, so that a changed
# dependency installs again, and an unchanged one never asks the network, whatever the dates of files are.
READY := $(VENV)/.ready-$(shell cat setup.py constraints.txt | cksum | cut -d ' ' -f 1)

# Modules are compiled once, also where the environment forbids to keep that: tests start Python a hundred times.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help venv demo test test-all test-engines test-image fuzz bench bench-quick check format docs pictures \
    constraints licences audit flex-template dist smoke clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: $(READY) ## set up .venv with everything that the targets below need (they do it themselves)

$(READY):
	@command -v $(PYTHON) >/dev/null || { echo "make: $(PYTHON) is not installed; for another Python: make PYTHON=python3.12 ..." >&2; exit 1; }
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV) ..."
	@$(PIP) --constraint constraints.txt uv
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --constraint constraints.txt --editable '.[dev]' \
	    || $(PIP) --constraint constraints.txt --editable '.[dev]'
	@rm -f $(VENV)/.ready-*
	@touch $@

demo: $(READY) ## make a small sample collection, convert it and show the result
	@rm -rf demo
	$(BIN)/python tests/samples.py demo/photos
	$(BIN)/beam-tfrecord convert --input demo/photos --output demo/dataset --splits train=0.8,validation=0.1,test=0.1
	$(BIN)/beam-tfrecord show demo/dataset --limit 3
	@test ! -e demo/dataset/report.html || echo "For a person: open demo/dataset/report.html in a browser."

test: $(READY) ## run the test suite but for what is slow by nature (ARGS="-k word" for a part of it)
	@$(BIN)/python -m pytest --numprocesses 2 --dist worksteal -m "not slow" $(ARGS)

test-all: $(READY) ## run what make test leaves out: kills, real clusters, long fuzzing, whole installations
	@$(BIN)/python -m pytest --numprocesses 2 --dist worksteal -m slow $(ARGS)

test-engines: $(READY) ## the same bytes on Prism, Beam's JVM job service, Flink, Spark and real object stores: fetches what can be had, says what it skips
	@$(BIN)/python -m tests.fetch_engines build/engines
	@ENGINES=build/engines $(BIN)/python -m pytest --numprocesses 2 --dist loadscope tests/cluster $(ARGS)

test-image: $(READY) ## the image, built without a Docker engine and run: needs root, buildah, debootstrap and Go, 10 GB and 15 minutes
	@IMAGE_PLACE=build/image $(BIN)/python -m pytest -v -s --durations=0 --override-ini=faulthandler_timeout=0 tests/cluster/test_image.py $(ARGS)

fuzz: $(READY) ## damaged images, odd documents and random collections by the ten thousand (ARGS="--count 50000 --seed 1 --keep folder")
	@$(BIN)/python -m tests.fuzz_images $(or $(ARGS),--count 20000)
	@$(BIN)/python -m tests.fuzz_documents $(or $(ARGS),--count 100000)
	@$(BIN)/python -m tests.fuzz_collections $(or $(ARGS),--count 10000)

bench: $(READY) ## measure the tool beside what people use today (ARGS="--only P1 P2"); some minutes on a quiet machine
	@$(BIN)/python -m benchmarks $(ARGS)

bench-quick: $(READY) ## the same with a tenth of the data
	@$(BIN)/python -m benchmarks --quick $(ARGS)

check: $(READY) ## format, lint, types, import direction, dead code
	@$(BIN)/ruff format --check . || { echo "make format mends this."; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/vulture

format: $(READY) ## format the code and mend what the linter can mend
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

docs: $(READY) ## build the documentation as a site into build/site; any doubtful link is an error
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict
	@echo "build/site/index.html is there; its search needs a server: python3 -m http.server --directory build/site"

pictures: $(READY) ## make the pictures of the documentation anew (needs Chromium)
	@$(BIN)/python -m tests.make_pictures docs/pictures

constraints: $(READY) ## pin the newest versions that fit setup.py, for all Pythons at once; run make test afterwards
	@$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.10 --all-extras \
	    --no-annotate --custom-compile-command 'make constraints' --output-file constraints.txt setup.py

licences: $(READY) ## write docs/licences.md anew: what a default installation brings, and under which licences
	@$(BIN)/python -m tests.licences > docs/licences.md.new
	@mv docs/licences.md.new docs/licences.md

audit: $(READY) ## compare constraints.txt with the published advisories; fails where a package could not be compared
	@$(BIN)/uv tool run --quiet pip-audit --strict --progress-spinner off --no-deps --disable-pip --requirement constraints.txt

flex-template: $(READY) ## write flex_template.json anew, from the flags of convert
	@$(BIN)/python -m pipelines.flex_template --metadata > flex_template.json.new
	@mv flex_template.json.new flex_template.json

dist: $(READY) ## build the wheel and the source archive into dist/
	@rm -rf build dist
	@$(BIN)/python -m build --quiet --outdir dist .
	@ls dist

smoke: $(READY) ## build both packages and try them in empty environments on every Python found (ARGS="--extra tensorflow")
	@$(BIN)/python -m tests.smoke_packages $(ARGS)

clean: ## remove what the other targets made, except .venv
	@rm -rf demo build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	@find beam_tfrecord pipelines tests -name __pycache__ -type d -prune -exec rm -rf {} +
