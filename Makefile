# Every target makes what it needs; `make demo` and `make test` work on a fresh checkout.
.DEFAULT_GOAL := help
.PHONY: help setup kube-apiserver demo dev test test-unit lint format bench chaos-kill crds lock kind clean
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest

help: ## Show the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-15s %s\n", $$1, $$2}'

.venv/ready: requirements.lock pyproject.toml hack/venv.sh
	hack/venv.sh

setup: .venv/ready ## Make .venv from the lock

kube-apiserver: .venv/ready ## Find, fetch or build kube-apiserver and etcd (once a machine)
	$(BIN)/python -m tarsy.local.apiserver.acquire

demo: kube-apiserver ## Investigate a crash-looping Deployment on this machine
	$(BIN)/tarsy demo

dev: kube-apiserver ## Run everything on this machine until Ctrl-C
	$(BIN)/tarsy dev

lint: .venv/ready ## Check style, types, import contracts, generated CRDs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONPATH=operator $(BIN)/lint-imports
	@out=$$(mktemp -d) && $(BIN)/tarsy crds --out $$out && diff -r crds $$out && rm -r $$out \
	  || { echo 'crds/ is stale: run make crds'; exit 1; }

test: lint kube-apiserver ## Run all tests, on a real Kubernetes API and a real Postgres
	$(PYTEST) -n 2 --dist loadgroup

test-unit: .venv/ready ## Run the tests without I/O
	$(PYTEST) -n 2 tests/unit

chaos-kill: kube-apiserver ## Kill the operator at each boundary of the record; nothing may be repeated
	$(PYTEST) -s -n 0 tests/chaos -k kill

bench: kube-apiserver ## Measure, never assert
	$(BIN)/python -m tests.bench

format: .venv/ready ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

crds: .venv/ready ## Generate crds/ from the models
	$(BIN)/tarsy crds --out crds

lock: .venv/ready ## Resolve requirements.lock anew from pyproject.toml
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --upgrade --all-extras --generate-hashes --no-annotate --no-header --no-emit-index-url \
	  --output-file requirements.lock pyproject.toml
	$(BIN)/uv pip compile --upgrade --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
	  --no-emit-index-url -c requirements.lock --output-file requirements-run.lock pyproject.toml
	echo 'setuptools>=77' | $(BIN)/uv pip compile --upgrade --universal --python-version 3.11 --generate-hashes \
	  --no-annotate --no-header --no-emit-index-url --output-file requirements-build.lock -

kind: .venv/ready ## Create a kind cluster and install TARSy there (needs Docker)
	hack/kind.sh

clean: ## Remove what these targets made in the checkout
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
