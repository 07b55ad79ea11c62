# Every target makes what it needs; `make demo` and `make test` work on a fresh checkout.
.DEFAULT_GOAL := help
.PHONY: bench-injection help setup kube-apiserver kube-extensions test-newer demo demo-alertmanager demo-remediation monitoring-servers dev test test-quick test-real test-all test-both test-unit lint format drift bench chaos chaos-kill chaos-postgres chaos-zombie chaos-limits chaos-cost chaos-storm crds monitoring manifests lock kind cluster clean
BIN := .venv/bin
# Only these plugins: what the product needs brings others, which cost each process seconds.
PLUGINS := --disable-plugin-autoload $(addprefix -p ,asyncio randomly timeout hypothesispytest)
PYTEST := $(BIN)/python -m pytest $(PLUGINS)
# Tests start the product dozens of times: that is to read bytecode, not to compile it anew.
unexport PYTHONDONTWRITEBYTECODE
# A file stays in one worker (tests/workers.py), the longest come first (tests/conftest.py).
# Tests of servers wait much: two workers of low priority run others meanwhile.
IN_PARALLEL := --beside 2 --workers

help: ## Show the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-19s %s\n", $$1, $$2}'

.venv/ready: requirements.lock requirements-uv.lock requirements-build.lock hack/venv.sh \
  pyproject.toml operator/kubeapi/pyproject.toml operator/tarsy_dev/pyproject.toml
	hack/venv.sh

setup: .venv/ready ## Create .venv from the lock

kube-apiserver: .venv/ready ## Find, fetch or build kube-apiserver and etcd (once a machine)
	$(BIN)/python -m tarsy_dev.apiserver.acquire

kube-extensions: .venv/ready ## Build the API extensions server of Kubernetes 1.36 (once a machine)
	$(BIN)/python -m tarsy_dev.apiserver.extensions_build

demo: ## Investigate a crash-looping Deployment on this machine
	@$(MAKE) --no-print-directory -j 2 .venv/ready page-where-node-is
	$(BIN)/tarsy demo

demo-alertmanager: ## Investigate an alert that a real Prometheus and Alertmanager send
	@$(MAKE) --no-print-directory -j 2 .venv/ready page-where-node-is
	$(BIN)/tarsy demo --scenario alertmanager

demo-remediation: ## Propose a change, approve it, and make it with a real tool server (REMEDY=key, scale, restart, rollback or all)
	@$(MAKE) --no-print-directory -j 2 .venv/ready page-where-node-is
	$(BIN)/tarsy demo --scenario remediation $(if $(REMEDY),--remedy $(REMEDY))

# Statically linked: it runs in images of others. The image builds it by the same line.
.PHONY: launcher
LAUNCHER := build/tarsy-launcher
launcher: $(LAUNCHER) ## Build the program that starts stdio tool servers in their own images (needs a C compiler)

$(LAUNCHER): operator/launcher/launcher.c operator/launcher/build.sh
	@mkdir -p build
	@operator/launcher/build.sh $@

monitoring-servers: .venv/ready ## Find or fetch Prometheus and Alertmanager (once a machine)
	$(BIN)/python -m tarsy_dev.monitoring.binaries

dev: ## Run everything on this machine until Ctrl-C
	@$(MAKE) --no-print-directory -j 2 .venv/ready page-where-node-is
	$(BIN)/tarsy dev

# The page is built once, and again when a source of it changes. What tests it needs more than what builds it.
.PHONY: page fixtures page-where-node-is test-page test-browser
PAGE := operator/tarsy/http/page/index.html
PAGE_FROM := $(wildcard operator/page/*.html operator/page/*.json operator/page/*.ts operator/page/src/* operator/page/src/*/*)
page: $(PAGE) ## Build the web UI (needs node)

$(PAGE): operator/page/node_modules/.ready $(filter-out %.d.ts,$(PAGE_FROM))
	@echo 'page: building it' >&2
	@cd operator/page && npm run --silent build -- --logLevel warn && touch ../tarsy/http/page/index.html

operator/page/node_modules/.ready: operator/page/package-lock.json
	@echo 'page: installing what builds it (npm ci, once)' >&2
	@cd operator/page && npm ci --silent --omit=dev && touch node_modules/.ready

operator/page/node_modules/.tested: operator/page/package-lock.json
	cd operator/page && npm ci --silent && touch node_modules/.ready node_modules/.tested

page-where-node-is:
	@if ! command -v npm >/dev/null; then echo 'There is no node here: it goes on without the web UI.'; \
	elif ! $(MAKE) --no-print-directory $(PAGE); then echo 'The web UI could not be built: it goes on without it.'; fi

test-page: .venv/ready operator/page/node_modules/.tested ## Check the web UI against the API's types and run its unit tests
	@mkdir -p build
	$(BIN)/python operator/page/openapi.py >build/openapi.json
	cd operator/page && npm run --silent types && npm run --silent check && npm test --silent

fixtures: operator/page/node_modules/.ready ## Build all states of the web UI from fixture data: build/page-fixtures/fixtures.html
	cd operator/page && npm run --silent fixtures -- --logLevel warn

test-browser: .venv/ready operator/page/node_modules/.tested page fixtures ## Test the web UI in a browser
	@test -x /usr/bin/chromium || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qqy chromium; }
	@$(BIN)/python -c 'import playwright' 2>/dev/null || \
	  $(BIN)/python -m pip --disable-pip-version-check --quiet install --require-hashes -r requirements-docs.lock
	TARSY_BROWSER=1 $(PYTEST) tests/browser

# Needs 850 MB of packages, so nothing else builds it. URL=... is where you publish the archive.
.PHONY: headlamp headlamp-host test-headlamp
HEADLAMP := operator/headlamp
headlamp: .venv/ready $(HEADLAMP)/node_modules/.ready ## Build the Headlamp plugin: build/headlamp/tarsy-0.1.0.tar.gz (needs node)
	@cd $(HEADLAMP) && npm run --silent build >/dev/null
	@PYTHONPATH=. $(BIN)/python -m hack.headlamp --url '$(URL)'

test-headlamp: $(HEADLAMP)/node_modules/.ready ## Check the types of the Headlamp plugin and run its unit tests
	cd $(HEADLAMP) && npm run --silent check && npm test --silent

headlamp-host: $(HEADLAMP)/node_modules/.ready
	cd $(HEADLAMP) && npm run --silent host -- --logLevel warn

$(HEADLAMP)/node_modules/.ready: $(HEADLAMP)/package-lock.json
	@echo 'headlamp: installing what builds it (npm ci, once)' >&2
	@cd $(HEADLAMP) && npm ci --silent --ignore-scripts && touch node_modules/.ready

lint: .venv/ready ## Check style, types, import contracts, generated CRDs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	hack/mypy.sh
	PYTHONPATH=operator:operator/kubeapi/src:operator/tarsy_dev/src $(BIN)/lint-imports
	@out=$$(mktemp -d) && $(BIN)/tarsy crds --out $$out && diff -r crds $$out && rm -r $$out \
	  || { echo 'crds/ is stale: run make crds'; exit 1; }

# Style and types are checked beside the tests; either one's failure is make's.
test: .venv/ready ## Run lint, and all but the heavy tests on the embedded Kubernetes API
	@$(MAKE) --no-print-directory -j 2 lint test-quick

test-quick: .venv/ready
	$(PYTEST) $(IN_PARALLEL) 3 --quick

test-real: kube-apiserver ## Run the tests that need a Kubernetes API on a real one
	$(PYTEST) $(IN_PARALLEL) 2 --api real

# Where the server cannot be built (no network, packages that have moved), the tests are skipped and the reason is printed.
test-newer: .venv/ready ## Run the tests of CRDs, CEL and policies on the API extensions server of Kubernetes 1.36
	@if $(BIN)/python -m tarsy_dev.apiserver.extensions_build; then $(PYTEST) $(IN_PARALLEL) 2 --api newer; \
	else echo 'make test-newer: skipped, see the reason above.'; fi

# Tests on Kubernetes 1.36's server come first where `make kube-extensions` has built it; nobody waits for that here.
test-all: kube-apiserver ## Run lint, and all tests on both Kubernetes APIs, as CI does; failed tests run once more alone
	@$(MAKE) --no-print-directory -j 2 lint test-both

test-both: .venv/ready
	@if $(BIN)/python -m tarsy_dev.apiserver.extensions_build --find; then $(MAKE) --no-print-directory test-newer; \
	else echo 'make test-all: tests on Kubernetes 1.36 are skipped, see the reason above.'; fi
	PYTEST='$(PYTEST)' IN_PARALLEL='$(IN_PARALLEL) 3' hack/test-all.sh --api both

test-unit: .venv/ready ## Run the tests without I/O
	$(PYTEST) $(IN_PARALLEL) 2 tests/unit

# The proofs are small, as in `make test-all`; CHAOS=full takes minutes each. API=real: on a real Kubernetes API.
CHAOS := small
API := embedded
CHAOS_TEST := TARSY_CHAOS=$(CHAOS) $(PYTEST) -s --api $(API)

chaos: chaos-kill chaos-postgres chaos-zombie chaos-limits chaos-cost chaos-storm ## Run all crash tests: nothing may be lost

chaos-kill: .venv/ready ## Kill the process at twelve points of every strategy; no finished step may be repeated
	$(CHAOS_TEST) tests/chaos/test_points.py tests/chaos/test_points_beside.py tests/chaos/test_kill.py \
	  tests/chaos/test_signatures.py tests/chaos/test_deletion.py tests/chaos/test_drain.py tests/chaos/test_gate.py \
	  tests/chaos/test_scoring.py

chaos-postgres: .venv/ready ## Restart Postgres under load; each step must be exactly one row
	$(CHAOS_TEST) tests/chaos/test_postgres.py

chaos-zombie: .venv/ready ## Wake a worker after its lease expired, and run two active controllers; neither may do harm
	$(CHAOS_TEST) tests/chaos/test_zombie.py tests/chaos/test_pause.py tests/chaos/test_two_active.py

chaos-limits: .venv/ready ## Run eight workers under a limit of three, with and without the claim's lock
	$(CHAOS_TEST) tests/chaos/test_limits.py

chaos-cost: .venv/ready ## Kill workers at random; every billed token must be on record
	$(CHAOS_TEST) tests/chaos/test_cost.py

chaos-storm: .venv/ready ## Send a thousand alerts while everything restarts; every alert must be accounted for
	$(CHAOS_TEST) tests/chaos/test_storm.py

drift: kube-apiserver ## Compare the answers of the embedded API with a real one
	$(BIN)/python -m tests.drift

bench: kube-apiserver ## Measure; assert nothing
	$(BIN)/python -m tests.bench

bench-injection: .venv/ready ## Play prompt injections through the engine, AgentDojo's too where it is installed, and print the tables
	$(BIN)/python -m tests.bench.injection
	$(BIN)/python -m tests.bench.agentdojo

format: .venv/ready ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

crds: .venv/ready ## Generate crds/ from the models
	$(BIN)/tarsy crds --out crds

monitoring: .venv/ready ## Generate the dashboard and the tables of manifests/components/monitoring
	$(BIN)/python hack/monitoring.py

# Library and samples have objects of kinds that install.yaml defines: apply them after it.
# IMAGE=registry/name:tag is the image of operator, workers and tools alike.
RENDERED := build/manifests
manifests: ## Render manifests/ for IMAGE=... into build/manifests/, one file per folder (needs kubectl 1.21 or newer)
	@mkdir -p $(RENDERED)
	kubectl kustomize manifests/base >$(RENDERED)/install.yaml
	kubectl kustomize manifests/overlays/ha >$(RENDERED)/install-ha.yaml
	kubectl kustomize manifests/overlays/workers >$(RENDERED)/install-workers.yaml
	kubectl kustomize manifests/library >$(RENDERED)/library.yaml
	@test -z '$(IMAGE)' || { sed -i.bak -E 's|image: tarsy-operator(:[^ ]*)?$$|image: $(IMAGE)|' $(RENDERED)/*.yaml && \
	  rm $(RENDERED)/*.bak && echo 'They name the image $(IMAGE).'; }

# ARTIFACTHUB_ID=... is the ID of your repository there; it writes artifacthub-repo.yml beside.
charts: .venv/ready ## Make the Helm charts for IMAGE=... in build/charts (needs kubectl 1.21 or newer)
	@mkdir -p build/charts
	PYTHONPATH=. $(BIN)/python -m hack.chart --image '$(IMAGE)' --artifacthub-id '$(ARTIFACTHUB_ID)'

# REPLACES=... is the version that it upgrades.
bundle: .venv/ready ## Make the OLM bundle for IMAGE=... in build/bundle (needs kubectl 1.21 or newer)
	@mkdir -p build
	PYTHONPATH=. $(BIN)/python -m hack.bundle --image '$(IMAGE)' --replaces '$(REPLACES)'

.PHONY: bundle charts docs gallery pictures sbom release
docs: .venv/ready ## Build the documentation into build/docs; a warning fails
	$(BIN)/python -c 'import material' 2>/dev/null || \
	  $(BIN)/python -m pip --disable-pip-version-check --quiet install --require-hashes -r requirements-docs.lock
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo build/docs/index.html

# Needs Chromium and node. Without them: `PYTHONPATH=. .venv/bin/python -m hack.gallery --text`.
gallery: .venv/ready page ## Run the investigations of docs/gallery, and write its pages and pictures
	@test -x /usr/bin/chromium || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qqy chromium; }
	@$(BIN)/python -c 'import playwright' 2>/dev/null || \
	  $(BIN)/python -m pip --disable-pip-version-check --quiet install --require-hashes -r requirements-docs.lock
	PYTHONPATH=. $(BIN)/python -m hack.gallery

# Needs Chromium and node. The pictures are committed.
pictures: .venv/ready page fixtures headlamp-host hack/site/mermaid/node_modules/.ready ## Make the pictures of README and docs/
	@test -x /usr/bin/chromium || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qqy chromium; }
	@$(BIN)/python -c 'import playwright' 2>/dev/null || \
	  $(BIN)/python -m pip --disable-pip-version-check --quiet install --require-hashes -r requirements-docs.lock
	PYTHONPATH=. $(BIN)/python -m hack.site.pictures

hack/site/mermaid/node_modules/.ready: hack/site/mermaid/package-lock.json
	cd hack/site/mermaid && npm ci --silent --ignore-scripts && touch node_modules/.ready

sbom: .venv/ready ## Write the bill of materials, build/sbom.cdx.json, and THIRD_PARTY_LICENSES.md
	@mkdir -p build
	$(BIN)/python -m hack.sbom --licences
	$(BIN)/python -m hack.sbom >build/sbom.cdx.json

# IMAGE=registry/name@sha256:... is what the rendered manifests name. Nothing is pushed or signed.
release: .venv/ready page ## Build a tagged version into build/release: packages, manifests, bill of materials, checksums
	$(BIN)/python -m hack.release check
	$(MAKE) manifests charts bundle
	$(BIN)/python -m hack.release build

lock: .venv/ready ## Resolve the lock files from pyproject.toml
	printf 'uv\n' | $(BIN)/uv pip compile --upgrade --universal --python-version 3.11 --generate-hashes --no-annotate \
	  --no-header --no-emit-index-url --output-file requirements-uv.lock -
	$(BIN)/uv pip compile --upgrade --generate-hashes --no-annotate --no-header --no-emit-index-url \
	  --extra all --extra test --no-emit-package tarsy-operator --no-emit-package embedded-kubeapi \
	  --output-file requirements.lock pyproject.toml operator/kubeapi/pyproject.toml operator/tarsy_dev/pyproject.toml
	$(BIN)/uv pip compile --upgrade --generate-hashes --no-annotate --no-header --no-emit-index-url -c requirements.lock \
	  --extra all --extra test --extra docs --extra browser --no-emit-package tarsy-operator \
	  --no-emit-package embedded-kubeapi --output-file requirements-docs.lock \
	  pyproject.toml operator/kubeapi/pyproject.toml operator/tarsy_dev/pyproject.toml
	$(BIN)/uv pip compile --upgrade --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
	  --no-emit-index-url --extra all -c requirements.lock --output-file requirements-run.lock pyproject.toml
	echo 'setuptools>=77' | $(BIN)/uv pip compile --upgrade --universal --python-version 3.11 --generate-hashes \
	  --no-annotate --no-header --no-emit-index-url --output-file requirements-build.lock -

kind: .venv/ready ## Create a kind cluster and install TARSy there (needs Docker)
	hack/kind.sh

# As root on Debian 12; what it needs stands at the top of the script. `hack/cluster.sh down` ends it.
cluster: kube-apiserver page ## Start a one-node cluster with the overlay ha and test it
	hack/cluster.sh up
	TARSY_CLUSTER=$${TARSY_CLUSTER_STATE:-/var/lib/tarsy-cluster}/pki/admin.kubeconfig $(PYTEST) tests/cluster

clean: ## Remove what these targets made in the checkout
	find operator controllers tests -name __pycache__ -prune -exec rm -rf {} +
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	rm -rf operator/page/node_modules operator/headlamp/node_modules operator/tarsy/http/page hack/site/mermaid/node_modules
