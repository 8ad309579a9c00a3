# Every target sets up what it needs in .venv; nothing but Python >= 3.11 and make is assumed. Torch goes into an
# environment of its own, so that everything else is tried without it.
# Paths are relative to this folder, so its own path may contain spaces.

PYTHON ?= python3
PYTEST_ARGS ?= -n auto --dist worksteal
TORCH ?= torch==2.13.0
VENV := .venv
TORCH_VENV := .venv-torch
MINIMUM_VENV := .venv-minimum
WHEEL_VENV := .venv-wheel
BIN := $(VENV)/bin
# most of what is installed is never imported: what is, is compiled then
INSTALL_IN := bin/python -m pip install -qq --disable-pip-version-check --no-input --no-compile
INSTALL := $(VENV)/$(INSTALL_IN)

.DEFAULT_GOAL := help
.PHONY: chromium coverage dist environment environment-torch help demo test test-minimum test-wheel test-data test-rest test-system test-torch test-wide test-slow test-browser lint house format bench docs reproduce clean
.DELETE_ON_ERROR:
.PRECIOUS: $(VENV)/.stamp-%

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/.stamp-plot  ## show when learning the weights of views pays, on real data, under a minute
	@$(BIN)/kernelweave demo

# one BLAS thread per process: the tests already run one process per core
test: export OMP_NUM_THREADS := 1
test: $(VENV)/.stamp-test  ## run the tests of every part, the docstring examples and the README, under five minutes
	@$(BIN)/python -m pytest $(PYTEST_ARGS)

test-data: export OMP_NUM_THREADS := 1
test-data: $(VENV)/.stamp-test  ## run the tests that read real data, in KERNELWEAVE_DATA or ../shared/data
	@$(BIN)/python -m pytest $(PYTEST_ARGS) -m "data and not slow"

# one collection of the tests instead of three
test-rest: export OMP_NUM_THREADS := 1
test-rest: $(VENV)/.stamp-test  ## run test-wide, test-data and test-system at once
	@$(BIN)/python -m pytest $(PYTEST_ARGS) -m "(wide or data or system) and not slow and not browser"

test-wide: export OMP_NUM_THREADS := 1
test-wide: $(VENV)/.stamp-test  ## run the cases that make test leaves out: more of the same, and expensive ones
	@$(BIN)/python -m pytest $(PYTEST_ARGS) -m "wide and not slow and not browser"

test-system: export OMP_NUM_THREADS := 1
test-system: $(VENV)/.stamp-test  ## run whole commands, report pages, clusters, fits that are killed
	@$(BIN)/python -m pytest $(PYTEST_ARGS) -m "system and not slow"

# the CPU build is enough for the tests, and small
environment-torch:  ## install what test-torch needs, in an environment of its own
	@$(MAKE) --no-print-directory VENV=$(TORCH_VENV) $(TORCH_VENV)/.stamp-test $(TORCH_VENV)/.stamp-cpu-torch

test-torch: export OMP_NUM_THREADS := 1
test-torch: environment-torch  ## run the tests that need torch, on its CPU device
	@$(TORCH_VENV)/bin/python -m pytest $(PYTEST_ARGS) -m "torch and not slow"

test-slow: export OMP_NUM_THREADS := 1
test-slow: $(VENV)/.stamp-test  ## run the tests that take long
	@$(BIN)/python -m pytest $(PYTEST_ARGS) -m slow

# Chromium comes from the system; where there is none and none can be installed, the tests skip and say why
test-browser: export OMP_NUM_THREADS := 1
test-browser: $(VENV)/.stamp-browser  ## look at the report page, and the pages of make docs, in a real browser, Chromium
	@for name in "$$KERNELWEAVE_BROWSER" chromium chromium-browser google-chrome google-chrome-stable; do \
	  command -v "$$name" > /dev/null && exit 0; done; $(MAKE) --no-print-directory chromium
	@$(BIN)/python -m pytest -m browser -rs tests/app/report tests/test_site.py

# the wheel is built from the source distribution: what that lacks, the wheel lacks
dist: $(VENV)/.stamp-release  ## build the source distribution, and the wheel from it, in dist
	@rm -rf dist
	@$(BIN)/python -m build --outdir dist . > dist.log 2>&1 || { cat dist.log; exit 1; }
	@rm -f dist.log; ls dist

# nothing but the wheel and pytest: no checkout on the path, no optional package
test-wheel: export OMP_NUM_THREADS := 1
test-wheel: dist  ## install the wheel in an environment of its own; run the README and what users meet first
	@rm -rf $(WHEEL_VENV)
	@$(PYTHON) -m venv $(WHEEL_VENV)
	@$(WHEEL_VENV)/$(INSTALL_IN) dist/*.whl pytest
	@$(WHEEL_VENV)/bin/python -m pytest -p no:cacheprovider --confcutdir=tools tools/test_wheel.py README.md

# what breaks first when a dependency is old: tables, the command line, plots, files, compiled functions; that
# old packages warn of newer ones which they need is no fault
MINIMUM := README.md tests/losses/test_contract.py tests/kernels/test_numeric.py tests/kernels/test_views.py \
  tests/estimators/test_labels.py tests/inspection/test_weights.py tests/gram/test_parquet.py \
  tests/persistence/test_container.py tests/app/cli/test_read.py tests/app/test_command.py
test-minimum: export OMP_NUM_THREADS := 1
# what another version of numba has compiled is no use to this one, and both would write the same files
test-minimum: export NUMBA_CACHE_DIR := $(CURDIR)/$(MINIMUM_VENV)/numba
test-minimum:  ## run some of the tests with the oldest versions that pyproject.toml allows
	@$(MAKE) --no-print-directory VENV=$(MINIMUM_VENV) $(MINIMUM_VENV)/.stamp-minimum-versions
	@$(MINIMUM_VENV)/bin/python -m pytest -p no:cacheprovider -o filterwarnings=default -q $(MINIMUM)

# functions that numba compiles are not seen, as Python does not run them
coverage: export OMP_NUM_THREADS := 1
coverage: $(VENV)/.stamp-coverage  ## run make test with coverage, and print what no line of it reached
	@$(BIN)/python -m pytest $(PYTEST_ARGS) --cov --cov-report=term:skip-covered --cov-report=xml:build/coverage.xml

# one call of pip instead of four
environment: $(VENV)/.stamp-venv  ## install what the targets below need, torch apart, in one go
	@$(INSTALL) --editable ".[test,lint,docs,browser,release]"
	@touch $(VENV)/.stamp-plot $(VENV)/.stamp-test $(VENV)/.stamp-lint $(VENV)/.stamp-docs $(VENV)/.stamp-browser $(VENV)/.stamp-release

chromium:
	@if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
	  echo "Installing chromium (once)"; \
	  export DEBIAN_FRONTEND=noninteractive; \
	  timeout 300 apt-get -qq update && timeout 600 apt-get -qq install --no-install-recommends chromium > /dev/null \
	    || echo "chromium could not be installed: the browser tests will be skipped"; \
	else \
	  echo "No Chromium found, and installing it takes root: apt-get install chromium, or set KERNELWEAVE_BROWSER"; \
	fi

lint: $(VENV)/.stamp-lint  ## ruff check, ruff format --check, mypy
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy

house: $(VENV)/.stamp-plot  ## count files, lines and the functions of one fit; a report, not a limit
	@$(BIN)/python tools/house.py

format: $(VENV)/.stamp-lint  ## fix what ruff can fix, and format
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

# BENCH=full: the sizes of docs/results/benchmarks.md and every benchmarks/bench_*.py (hours); rivals are
# those installed in .venv; results go to build/bench
bench: $(VENV)/.stamp-bench  ## run the benchmarks at small sizes (a few minutes), or with BENCH=full
	@$(BIN)/python benchmarks/run.py $(if $(filter full,$(BENCH)),--full)

# those on simulated data; `python experiments --all --quick` runs every table and figure
reproduce: export OMP_NUM_THREADS := 1
reproduce: $(VENV)/.stamp-plot  ## run the quick forms of the experiments on simulated data, about a minute
	@$(BIN)/python experiments lp-toy gomp-toy --quick --again --out build/experiments

# one BLAS thread, as in the tests; nothing is fetched, and every warning is an error
docs: export OMP_NUM_THREADS := 1
docs: $(VENV)/.stamp-docs  ## build the documentation in build/docs/html
	@rm -rf docs/api/generated  # pages of names that are gone
	@$(BIN)/python -m sphinx -q -W --keep-going -n -d build/docs/doctrees docs build/docs/html
	@echo "build/docs/html/index.html"

clean:  ## remove the environments, the caches and what the demo wrote
	rm -rf $(VENV) $(TORCH_VENV) $(MINIMUM_VENV) $(WHEEL_VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist kernelweave-demo.png docs/api docs/gallery
	find src tests benchmarks -type d -name __pycache__ -prune -exec rm -rf {} +

# the environment with one extra installed; done again only when pyproject.toml changes
$(VENV)/.stamp-%: pyproject.toml | $(VENV)/.stamp-venv
	@echo "Installing kernelweave[$*] in $(VENV) (once; this may take a minute or two)"
	@$(INSTALL) --editable ".[$*]"
	@touch $@

$(VENV)/.stamp-minimum-versions: pyproject.toml tools/minimum.py | $(VENV)/.stamp-venv
	@echo "Installing kernelweave and the oldest versions it allows in $(VENV) (once)"
	@$(VENV)/bin/python tools/minimum.py > $(VENV)/minimum.txt
	@$(INSTALL) --constraint $(VENV)/minimum.txt --editable ".[plot,tables,excel]" pytest hypothesis
	@touch $@

$(VENV)/.stamp-cpu-torch: | $(VENV)/.stamp-venv
	@echo "Installing torch in $(VENV) (once)"
	@$(INSTALL) $(TORCH)
	@touch $@

$(VENV)/.stamp-venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "kernelweave needs Python 3.11 or later, this is " + sys.version.split()[0] + ": try make PYTHON=/path/to/python3.11")'
	@$(PYTHON) -m venv $(VENV)
	@touch $@
