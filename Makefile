# Every target does its own set-up and may be repeated. `make help` lists them.
SHELL := /bin/bash
VENV  := .venv
PY    := $(VENV)/bin/python
HOSTS ?= 1 10 40
N     ?= 60
SEED  ?= 1
FUZZ  ?= 1000000
HISTORIES ?= 100000
# Many images set the first: every process would compile its libraries again, half the CPU of a short
# run. The second would put another checkout's modules before those of the virtual environment.
unexport PYTHONDONTWRITEBYTECODE PYTHONPATH
READY := $(VENV)/.ready
SANDBOX := $(VENV)/.sandbox-ready
BROWSER := $(VENV)/.browser-ready

.PHONY: help setup setup-product setup-sandbox setup-browser demo demo-cluster demo-upgrade test test-all test-profile mutants fuzz histories test-unit test-hosts test-gpu test-internet test-slow test-kubernetes lint measure bench alerts dashboards pictures terminal-pictures browser-pictures docs docs-site release-check image clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

setup: ## what the product and the sandbox need, one beside the other
	@$(MAKE) --silent --jobs 2 $(READY) $(SANDBOX)

setup-product: $(READY) ## virtual environment with Python packages; needs no root and no Debian

setup-sandbox: $(SANDBOX) ## Debian packages for the sandbox, as root or with sudo

setup-browser: $(BROWSER) ## a browser for the tests of pages: 100 MB, on Debian as root or with sudo

$(READY): pyproject.toml sandbox/pyproject.toml constraints.txt scripts/setup.sh
	@scripts/setup.sh $(VENV)

$(SANDBOX): scripts/debian-packages.txt scripts/setup_sandbox.sh
	@scripts/setup_sandbox.sh $@

$(BROWSER): scripts/browser-packages.txt scripts/setup_browser.sh $(READY)
	@scripts/setup_browser.sh $(PY) $@

demo: setup ## a sandbox of real hosts: provisioned, run again, verified
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" scripts/demo.sh

demo-cluster: setup ## a GPU stack on a real Kubernetes control plane, run again, checked
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" scripts/demo_cluster.sh

demo-upgrade: setup ## a driver is changed under work on four real nodes; the canary fails, is rolled back
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" scripts/demo_upgrade.sh

test: setup ## what every change must pass, on real components and Kubernetes 1.36
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" scripts/test.sh fast

test-all: setup setup-browser ## every test: all cases, Kubernetes 1.36 and 1.18, real DKMS builds
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" scripts/test.sh all

test-profile: setup ## make test, and where its time went: docs/explanation/testing.md
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(PY) -m scripts.test_profile

mutants: setup ## random changes of the product that make test must notice; N=60 SEED=1
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(PY) -m tests.mutation --count $(N) --seed $(SEED)

fuzz: $(READY) ## damaged input for every parser of foreign text; FUZZ=1000000 SEED=1
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(PY) -m tests.fuzz --inputs $(FUZZ) --seed $(SEED)

histories: $(READY) ## random histories of an upgrade, with kills at any moment; HISTORIES=100000 SEED=1
	@$(PY) -m tests.unit.upgrade.histories --count $(HISTORIES) --seed $(SEED)

test-unit: $(READY) ## the tests that need no hosts
	@$(VENV)/bin/pytest -q tests/unit tests/roles

test-hosts: setup ## the tests on sandbox hosts
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(VENV)/bin/pytest -q tests/hosts

test-gpu: $(READY) ## on a machine with a GPU and its driver, as root: facts, decisions, checks; leaves no file
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(VENV)/bin/pytest -q -m gpu tests/gpu

test-internet: setup ## before a release, with internet: real images, repositories and charts; prints which of them were real
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(VENV)/bin/pytest -q tests/internet

test-slow: setup ## real packages of the distribution, with a real DKMS build
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(VENV)/bin/pytest -q -m slow tests/hosts

test-kubernetes: setup ## the tests on control planes of every Kubernetes minor that can be built
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(PY) scripts/test_kubernetes.py

lint: $(READY) ## ruff, mypy --strict, codespell, the ratchet of sentences, and the sizes of measure
	@$(VENV)/bin/ruff check . && $(VENV)/bin/ruff format --check . && $(VENV)/bin/mypy && $(VENV)/bin/codespell
	@$(PY) -m scripts.sentences && $(PY) -m scripts.measure

measure: $(READY) ## how large the product is: lines, rooms, kinds of findings, tests
	@$(PY) -m scripts.measure

bench: setup ## speed against the floor and against Ansible, and on thousands of hosts; HOSTS="1 10 40"
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(PY) -m benchmarks --hosts $(HOSTS)
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(PY) -m benchmarks.workers

dashboards: $(READY) ## the JSON of the Grafana dashboards, from dashboards/*.py
	@$(PY) -m dashboards

alerts: $(READY) ## files of rules and the table of alerts, from gpufleet/monitoring/data/alerts.yaml
	@$(PY) scripts/generate_alerts.py

pictures: $(READY) ## docs/pictures: the dashboards on generated data, drawn by matplotlib
	@$(PY) scripts/draw_dashboards.py

terminal-pictures: setup ## docs/pictures: what commands print, from runs on sandbox hosts
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(PY) -m scripts.terminal_pictures

browser-pictures: setup setup-browser ## docs/pictures: the status page of sandbox hosts and this documentation, in a browser
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(PY) -m scripts.browser_pictures status-page
	@$(MAKE) --silent docs-site
	@$(PY) -m scripts.browser_pictures docs-start

docs: $(READY) ## generate docs/reference, the drawing of the rooms and the tables of keys
	@$(PY) -m scripts.generate_docs

docs-site: $(READY) ## the documentation as a site, in build/site; links are checked, nothing is loaded from elsewhere
	@mkdir -p build && NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict >build/site.log 2>&1 || { cat build/site.log >&2; exit 1; }
	@echo "build/site/index.html"

release-check: $(READY) ## what must hold before a tag is pushed, and the packages in dist/; TAG=vX.Y.Z
	@mkdir -p build && scripts/release_check.sh $(PY) "$(TAG)"

image: $(READY) ## container image of the controller; IMAGE=name BASE=image OPTIONS='options of the build'
	@IMAGE="$(IMAGE)" scripts/image.sh $(PY) $(if $(BASE),--build-arg BASE=$(BASE)) $(OPTIONS)

clean: ## take the sandbox, its caches and the virtual environment away
	@if [ -x $(VENV)/bin/gpufleet ]; then $(VENV)/bin/gpufleet sandbox cluster down --all; $(VENV)/bin/gpufleet sandbox down --all; fi
	@rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis "$${XDG_CACHE_HOME:-$$HOME/.cache}/gpufleet"
