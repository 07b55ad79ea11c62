# Every target makes what it needs; `make demo` and `make test` work on a fresh checkout.
.DEFAULT_GOAL := help
.PHONY: help setup kube-apiserver demo dev test test-real test-all test-unit lint format drift bench chaos chaos-kill chaos-postgres chaos-zombie chaos-limits chaos-cost chaos-storm crds manifests lock kind clean
BIN := .venv/bin
# Only these plugins: what the product needs brings others, which cost each process seconds.
PLUGINS := --disable-plugin-autoload $(addprefix -p ,xdist asyncio randomly timeout hypothesispytest)
PYTEST := $(BIN)/python -m pytest $(PLUGINS)
# Tests start the product dozens of times: that is to read bytecode, not to compile it anew.
unexport PYTHONDONTWRITEBYTECODE
# A file stays in one process, the longest come first (tests/conftest.py).
IN_PARALLEL := --no-loadscope-reorder

help: ## Show the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-15s %s\n", $$1, $$2}'

.venv/ready: requirements.lock requirements-uv.lock requirements-build.lock pyproject.toml hack/venv.sh
	hack/venv.sh

setup: .venv/ready ## Make .venv from the lock

kube-apiserver: .venv/ready ## Find, fetch or build kube-apiserver and etcd (once a machine)
	$(BIN)/python -m tarsy.local.apiserver.acquire

demo: .venv/ready ## Investigate a crash-looping Deployment on this machine
	$(BIN)/tarsy demo

dev: .venv/ready ## Run everything on this machine until Ctrl-C
	$(BIN)/tarsy dev

lint: .venv/ready ## Check style, types, import contracts, generated CRDs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONPATH=operator $(BIN)/lint-imports
	@out=$$(mktemp -d) && $(BIN)/tarsy crds --out $$out && diff -r crds $$out && rm -r $$out \
	  || { echo 'crds/ is stale: run make crds'; exit 1; }

test: lint ## Run the tests but the heavy ones, on the embedded Kubernetes API
	$(PYTEST) $(IN_PARALLEL) -n 3 --quick

test-real: kube-apiserver ## Run the tests that need a Kubernetes API, on a real one
	$(PYTEST) $(IN_PARALLEL) -n 2 --api real

test-all: lint kube-apiserver ## Run all tests, on both Kubernetes APIs: what CI runs
	$(PYTEST) $(IN_PARALLEL) -n 3 --api both

test-unit: .venv/ready ## Run the tests without I/O
	$(PYTEST) -n 2 tests/unit

# The proofs are small, as in `make test-all`; CHAOS=full takes minutes each. API=real: on a real Kubernetes API.
CHAOS := small
API := embedded
CHAOS_TEST := TARSY_CHAOS=$(CHAOS) $(PYTEST) -s -n 0 --api $(API)

chaos: chaos-kill chaos-postgres chaos-zombie chaos-limits chaos-cost chaos-storm ## Make all proofs that nothing is lost

chaos-kill: .venv/ready ## Kill at twelve points of every strategy, and in what lies beside; nothing may be repeated
	$(CHAOS_TEST) tests/chaos/test_points.py tests/chaos/test_points_beside.py tests/chaos/test_kill.py \
	  tests/chaos/test_signatures.py tests/chaos/test_deletion.py tests/chaos/test_drain.py

chaos-postgres: .venv/ready ## Restart Postgres under load; each step must be one row
	$(CHAOS_TEST) tests/chaos/test_postgres.py

chaos-zombie: .venv/ready ## Wake a worker after its lease, and have two controllers active; neither may do harm
	$(CHAOS_TEST) tests/chaos/test_zombie.py tests/chaos/test_pause.py tests/chaos/test_two_active.py

chaos-limits: .venv/ready ## Eight workers under a limit of three, with the lock of the claim and without
	$(CHAOS_TEST) tests/chaos/test_limits.py

chaos-cost: .venv/ready ## Kill workers at random; each token billed must be accounted for
	$(CHAOS_TEST) tests/chaos/test_cost.py

chaos-storm: .venv/ready ## Send a thousand alerts while everything is restarted; each must be accounted for
	$(CHAOS_TEST) tests/chaos/test_storm.py

drift: kube-apiserver ## Show where the embedded API answers differently from a real one
	$(BIN)/python -m tests.drift

bench: kube-apiserver ## Measure, never assert
	$(BIN)/python -m tests.bench

format: .venv/ready ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

crds: .venv/ready ## Generate crds/ from the models
	$(BIN)/tarsy crds --out crds

# Library and samples have objects of kinds that install.yaml defines: apply them after it.
manifests: ## Render manifests/ into build/manifests/, a file each (needs kubectl 1.21 or newer)
	@mkdir -p build/manifests
	kubectl kustomize manifests/base >build/manifests/install.yaml
	kubectl kustomize manifests/overlays/ha >build/manifests/install-ha.yaml
	kubectl kustomize manifests/overlays/workers >build/manifests/install-workers.yaml
	kubectl kustomize manifests/library >build/manifests/library.yaml

lock: .venv/ready ## Resolve requirements.lock anew from pyproject.toml
	printf 'uv\n' | $(BIN)/uv pip compile --upgrade --universal --python-version 3.11 --generate-hashes --no-annotate \
	  --no-header --no-emit-index-url --output-file requirements-uv.lock -
	$(BIN)/uv pip compile --upgrade --generate-hashes --no-annotate --no-header --no-emit-index-url \
	  --extra all --extra local --extra test --output-file requirements.lock pyproject.toml
	$(BIN)/uv pip compile --upgrade --generate-hashes --no-annotate --no-header --no-emit-index-url -c requirements.lock \
	  --extra all --extra local --extra test --extra docs --extra browser --output-file requirements-docs.lock pyproject.toml
	$(BIN)/uv pip compile --upgrade --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
	  --no-emit-index-url --extra all -c requirements.lock --output-file requirements-run.lock pyproject.toml
	echo 'setuptools>=77' | $(BIN)/uv pip compile --upgrade --universal --python-version 3.11 --generate-hashes \
	  --no-annotate --no-header --no-emit-index-url --output-file requirements-build.lock -

kind: .venv/ready ## Create a kind cluster and install TARSy there (needs Docker)
	hack/kind.sh

clean: ## Remove what these targets made in the checkout
	find operator controllers tests -name __pycache__ -prune -exec rm -rf {} +
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
