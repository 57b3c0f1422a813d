# `make` lists the targets. demo needs Go alone; check and test install what they
# need but for a C compiler.

GOLANGCI_LINT_VERSION := v2.15.0
GOLANGCI_LINT := $(CURDIR)/.bin/golangci-lint-$(GOLANGCI_LINT_VERSION)

REDIS_URL ?=
GOTESTFLAGS ?=
FUZZTIME ?= 20s

# The modules that users import or run. The others are in nightly alone: their databases
# and other people's libraries take longer to compile than they are worth in each run.
LIBRARY := . echo5limit fiber3limit hertzlimit grpclimit kratoslimit contrib/prometheus contrib/otel cmd/neap

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## send real HTTP to all seven frameworks; REDIS_URL=redis://… for a Redis of yours, none is needed
	@echo 'Compiling: the first time this takes some minutes.' >&2
	@go run ./examples/quickstart $(if $(REDIS_URL),-redis '$(REDIS_URL)')

.PHONY: play
play: ## serve a page on which to try limits, locks, guards and stock, with the console below it; ADDR=127.0.0.1:9000 for another address
	@echo 'Compiling: the first time this takes some minutes.' >&2
	@go run ./examples/play $(if $(ADDR),-addr '$(ADDR)')

# What the tests generate is the same in each run, or what NEAP_TEST_SEED says.
# Most tests wait for something, so more of them run at once than there are cores. So do
# the packages of a module.
TESTFLAGS = -race -vet=off -ldflags=-w -parallel 8 -p $(PACKAGES)
PACKAGES = $(shell expr $$(getconf _NPROCESSORS_ONLN || echo 2) + 1)

# Collecting garbage less often makes the linters faster. It makes tests slower: the race
# detector touches four more bytes for each byte of the heap.
check: export GOGC := $(or $(GOGC),800)

# Only debuggers read DWARF, and it is a quarter of what compiling takes. The race detector
# is left out of miniredis' Lua interpreter, which it slows down: one goroutine at a time
# runs each interpreter.
# Without nomsgpack, gin compiles a codec for MessagePack, which nothing here uses.
check test soak full direct: export GOFLAGS := $(GOFLAGS) -gcflags=all=-dwarf=false -gcflags=github.com/yuin/gopher-lua/...=-race=false -tags=nomsgpack

# A binary with the race detector sleeps a second before it ends, to see the last races.
# The nightly tests leave it at that.
test: export GORACE := $(or $(GORACE),atexit_sleep_ms=0)

.PHONY: test
test: export MODULES := $(LIBRARY)
test: redis ## run every test of the library, on miniredis, a real redis-server and a real cluster; GOTESTFLAGS for go test
	@echo "NEAP_TEST_SEED=$${NEAP_TEST_SEED:-1}"
	scripts/slow.sh 60 scripts/each-module.sh go test $(TESTFLAGS) -timeout 20m $(GOTESTFLAGS) ./...

.PHONY: nightly
nightly: ## run what takes long: soak, full, direct, upgrade, a seventh of the mutants, a third of the servers, fuzz, check-all and release-check; each of them even if another fails
	@NIGHT=$$(expr $$(date +%j) + 0) $(MAKE) --no-print-directory --keep-going soak full direct upgrade mutants fuzz servers check-all release-check

# Here one package follows the other, and one module the other: what one generates takes all
# processors for many minutes, and tests of others, which wait for something, would have none
# for seconds.
.PHONY: soak
soak: PACKAGES = 1
soak: export AT_ONCE := 1
soak: export NEAP_TEST_SCALE := 0.3
soak full: export NEAP_TEST_SEED := $(or $(NEAP_TEST_SEED),$(shell od -An -N6 -tu8 /dev/urandom | tr -d ' '))
soak: redis nginx haproxy chromium prometheus ## run the tests of all modules, from a fresh seed, with six times as many generated operations
	@echo "NEAP_TEST_SEED=$$NEAP_TEST_SEED"
	scripts/each-module.sh go test $(TESTFLAGS) -count=1 -timeout 60m ./...

.PHONY: full
full: PACKAGES = 1
full: export NEAP_TEST_SCALE := 1
full: redis ## run the tests of the primitives at their full count of generated operations, from a fresh seed, without the race detector
	@echo "NEAP_TEST_SEED=$$NEAP_TEST_SEED"
	go test $(filter-out -race,$(TESTFLAGS)) -count=1 -timeout 60m ./core/limit ./core/inflight ./core/stock ./core/idempotency ./core/lock

.PHONY: direct
direct: redis ## run the tests of the core and of net/http without the queue
	go test $(TESTFLAGS) -tags neap_direct -count=1 -timeout 20m ./core/... ./contrib/redis_rate ./neaptest ./nethttp

# It compiles the library twice more, from a commit that the checkout must have.
.PHONY: upgrade
upgrade: redis ## have processes of this tree and of the last release share one Redis; NEAP_BASELINE=… for another commit
	go test -vet=off -tags neap_upgrade -count=1 -timeout 20m ./internal/upgrade

# With -race it reads what test compiles, so that CI compiles all of it once.
.PHONY: check
check: export GOFLAGS += -race
check: export MODULES := $(LIBRARY)
check: $(GOLANGCI_LINT) luacheck ## check formatting, go.mod, the API since the last tag, golangci-lint (go vet is one of its linters) and luacheck
	@test -z "$$(gofmt -l .)" || { echo "gofmt -w these:"; gofmt -l .; exit 1; }
	scripts/each-module.sh go mod tidy -diff
	scripts/api-check.sh
	scripts/each-module.sh $(GOLANGCI_LINT) run --allow-serial-runners --config $(CURDIR)/.golangci.yml ./...
	luacheck --quiet lua examples

.PHONY: check-all
check-all: ## check the modules of examples, bench and console too
	@$(MAKE) --no-print-directory check MODULES=

BINARIES ?= .bin/neap

.PHONY: binaries
binaries: ## build the command neap for Linux, macOS and Windows, into BINARIES (.bin/neap)
	scripts/binaries.sh $(BINARIES)

VERSION ?=

.PHONY: release-check
release-check: ## rehearse a release of the commit that is checked out, in a clone: VERSION=v0.1.0
	scripts/release-check.sh $(VERSION)

.PHONY: bench
bench: redis ## measure decisions and the net/http middleware
	go test -run '^$$' -bench . -benchmem ./core/... ./nethttp/...

.PHONY: bench-peers
bench-peers: redis ## measure neap beside its peers for some minutes, into bench/RESULTS.md, its pictures, bench/LOAD.md, bench/LOCKS.md, bench/GUARD.md, bench/CALLBACKS.md, bench/STOCK.md and bench/HTTP.md
	cd bench && go run .

.PHONY: pictures
pictures: chromium ## take the screenshots of the console and of play in docs/pictures
	@fc-list :lang=zh | grep -q . || { echo "neap: no font has Chinese; install one: apt-get install fonts-noto-core fonts-noto-cjk" >&2; exit 1; }
	cd console/browsertest && go run .

.PHONY: observed
observed: redis prometheus ## ask a real Prometheus for the dashboard and the alerts, through an outage
	cd examples/observed && go test -count=1 -run TestTheDashboardAndTheAlerts .

.PHONY: browser
browser: chromium ## use the pages of the console and of play in a headless Chromium
	cd console/browsertest && go test -count=1 -timeout 20m ./...

.PHONY: mutants
mutants: redis ## make mutants of the adapters, limits, calls to others and locks; the tests must catch each
	go run ./internal/mutants $(if $(NIGHT),-night $(NIGHT))

.PHONY: fuzz
fuzz: redis ## fuzz each target for FUZZTIME (20s)
	scripts/fuzz.sh $(FUZZTIME)

.PHONY: servers
servers: ## run the tests of the core on each Redis and Valkey that Debian has; SERVERS=valkey-9.1 for some of them
	TESTFLAGS='$(filter-out -race,$(TESTFLAGS))' scripts/servers.sh $(SERVERS)

.PHONY: redis
redis:
	@scripts/need.sh "$${REDIS_SERVER:-redis-server}" redis-server redis

# Debian has it in /usr/sbin, which is not in everybody's PATH.
.PHONY: nginx
nginx:
	@PATH="$$PATH:/usr/sbin" scripts/need.sh nginx nginx nginx

.PHONY: haproxy
haproxy:
	@PATH="$$PATH:/usr/sbin" scripts/need.sh haproxy haproxy haproxy

.PHONY: chromium
chromium:
	@scripts/need.sh chromium chromium chromium

.PHONY: prometheus
prometheus:
	@scripts/need.sh promtool prometheus prometheus

.PHONY: luacheck
luacheck:
	@scripts/need.sh luacheck lua-check luacheck

# Built by the Go module proxy alone and outside go.mod, so that no user's
# go.sum grows by a linter. It does not take the -race of check: that makes it several
# times slower, and a race in the linter would fail the check.
$(GOLANGCI_LINT): export GOFLAGS := $(GOFLAGS)
$(GOLANGCI_LINT):
	GOBIN=$(@D) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)
	mv $(@D)/golangci-lint $@
