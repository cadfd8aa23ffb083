# make            prints the targets
# make build      builds bin/zk-lite
# make test       runs every test that needs no more than Go, bash, curl and sed (the walks through docs/http*.md)
.DEFAULT_GOAL := help
# All targets build alike, so that they share Go's build cache; a binary without cgo is static.
export CGO_ENABLED = 0
GO ?= go
# With STRESS=N, N busy loops run beside the target.
ifdef STRESS
override GO := $(CURDIR)/.ci/stress $(STRESS) $(GO)
endif
FUZZTIME ?= 10s
LINT := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

# Modules of their own, so that zk-lite does not depend on their dependencies.
MODULES := $(patsubst %/go.mod,%,$(wildcard */go.mod */*/go.mod */*/*/go.mod))

DIST ?= dist
DURATION ?= 10m
KEY ?=
ONLY ?=
RECORD ?=
SEED ?=
SCRIPTS ?= 5000
SERVERS ?= 3
VERSION ?=
HOSTILE ?= -hostile.all
RELEASE ?=
UPGRADES ?= Test
MIGRATION ?= Test
FAULTS ?= TestPartition|TestHostile|TestClock|TestRestart|DiskFull|TestFive|TestPower|TestSync|TestNoRoom|TestDisk|TestDescriptors|TestMemory|TestEdge|TestSlow

.PHONY: help build release sign packages image cross vulncheck dev short test slow race lint fuzz explore replay browser site diagrams lab-site interop sim monitoring suites clients tenants upgrade release-data migration oracle faults hostile soak edge soak-recipes bench benchmarks drill drill-backup kube

help: ## print this
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## the static binary, in ./bin
	$(GO) build -o bin/zk-lite ./cmd/zk-lite

release: ## dist/: static binaries for Linux, macOS and Windows, their modules and licences, packages, images; VERSION names it, KEY=file signs
	cd packaging && $(GO) run . -version '$(VERSION)' binaries packages image
	$(if $(KEY),$(MAKE) sign,@echo 'NOT SIGNED: make sign KEY=file')

sign: ## SHA256SUMS.sig: the checksums in DIST (dist), signed with KEY, a private key of SSH
	ssh-keygen -Y sign -f '$(KEY)' -n zk-lite '$(DIST)/SHA256SUMS'

packages: ## the deb and rpm packages, in dist/
	cd packaging && $(GO) run . -version '$(VERSION)' packages

image: ## the container images, in dist/: `docker load` and `podman load` read them
	cd packaging && $(GO) run . -version '$(VERSION)' image

kube: ## the Helm chart: lint, templates, schema; and pods as it configures them, in network namespaces (needs root)
	cd packaging/helm && $(GO) test -count=1 -parallel 4 -timeout 10m ./...

cross: ## vet for macOS, and the client and the command line for Windows
	GOOS=darwin $(GO) vet ./cmd/... ./app/... ./api/... ./server/... ./consensus/... ./client/... ./recipes/... ./zklitetest
	GOOS=windows $(GO) vet ./client/... ./recipes/... ./cmd/...

vulncheck: ## known vulnerabilities of the linked packages; needs the network
	$(GO) run golang.org/x/vuln/cmd/govulncheck@v1.9.0 ./cmd/... ./client/... ./recipes/...

dev: build ## the binary, and three servers of it on this machine, until Ctrl-C
	@bin/zk-lite dev

short: ## the tests that take a second or less each: under a minute
	$(GO) test -short ./...

# Most tests wait for servers: three packages at a time keep two processors busy. The longest come first, or the last
# would run alone.
test: ## every test that needs only Go, bash, curl and sed: under eight minutes
	$(GO) test -p 3 -timeout 15m ./integration/failover ./api ./...

slow: ## the tests that make test leaves out because they take long: killed and paused servers, the largest tables
	$(GO) test -tags slow -timeout 20m -run "$$(sed -n 's/^func \(Test[A-Za-z0-9_]*\)(.*/^\1$$/p' \
	  $$(grep -l '^//go:build slow' integration/failover/*_test.go lab/table/*_test.go) | paste -sd '|')" \
	  ./integration/failover ./lab/table

# The simulator has one thread, integration and cmd/zk-lite run the built binary, the root's tests read files, and
# TestTree_Large_... measures memory.
race: export CGO_ENABLED = 1
race: ## make test under the race detector, without what it cannot see
	$(GO) test -race -p 3 -timeout 20m -skip ^TestTree_Large_ ./api ./consensus ./lab/ensemble ./lab/judge \
	  $$($(GO) list ./... | grep -v -e /lab/ -e /integration -e /zk-lite$$)

lint: ## formatting, vet, linters, tidy modules; the nested modules, too
	@test -z "$$(gofmt -l .)" || { echo "not gofmt-ed:"; gofmt -l .; exit 1; }
	$(GO) vet ./...
	$(GO) vet -tags interop,zookeeper,privileged,soak,slow,faults,upgrade,prometheus,tenants,clients ./...
	$(GO) vet -tags nextrelease ./consensus/... ./api/... ./cmd/zk-lite
	$(GO) mod tidy -diff
	$(GO) run $(LINT) run ./...
	@set -e; for dir in $(MODULES); do echo "$$dir: vet, tidy, linters"; ( cd $$dir; \
	  $(GO) vet ./...; $(GO) mod tidy -diff; $(GO) run $(LINT) run ./... ); done

fuzz: ## every fuzz target for FUZZTIME each (10s)
	.ci/fuzz $(FUZZTIME)

explore: ## searches for faults for DURATION (10m) from SEED (the time); make replay runs its findings
	integration/explore $(DURATION) $(or $(SEED),$$(date +%s))

replay: ## earlier findings of make explore, again
	bash integration/findings.sh

site: SITE ?= bin/site
site: build ## all pages of documentation as a web site, in SITE (bin/site)
	bin/zk-lite docs --clone . --out $(SITE)

diagrams: ## draws docs/diagrams/*.dot again, after a change (Debian: graphviz)
	for f in docs/diagrams/*.dot; do dot -Tsvg "$$f" >"$${f%.dot}.svg" && \
	  echo "<!-- drawn from sha256 $$(sha256sum <"$$f" | cut -d' ' -f1) -->" >>"$${f%.dot}.svg"; done

lab-site: SITE ?= bin/lab-site
lab-site: ## the lab's page as static files, in SITE (bin/lab-site), with the simulator as WebAssembly
	GOOS=js GOARCH=wasm $(GO) build -trimpath -ldflags '-s -w' -o $(SITE)/lab.wasm ./lab/site
	$(GO) run ./lab/site -wasm $(SITE)/lab.wasm -glue "$$($(GO) env GOROOT)/lib/wasm/wasm_exec.js" -out $(SITE)
	@gzip -9 -c $(SITE)/lab.wasm | wc -c | awk '{ print "lab.wasm: " $$1 " bytes compressed"; exit $$1 > 3000000 }'

browser: ## the dashboard and the lab's page in a real Chromium, headless (Debian: chromium), with pictures in PICTURES (bin/pictures); -update in its folder makes those in docs
	cd integration/browser && $(GO) test -count=1 -timeout 20m ./...

interop: ## third-party clients, and a real ZooKeeper as the oracle (Debian: see .ci/run for packages)
	.ci/beside \
	  '$(GO) test -tags interop -timeout 15m ./integration/conformance ./integration/interop ./integration/migration ./migration/inspect ./lab/judge' \
	  '$(GO) test -tags interop -timeout 10m -run ^TestInterop ./api ./recipes && \
	   $(GO) test -tags interop,zookeeper -timeout 15m ./client/... ./recipes/... && \
	   $(GO) test -tags interop -timeout 15m -run "RealServers|Docs_Migration" ./cmd/zk-lite'

sim: ## SEEDS (1000) ensembles in virtual time under faults; SEED is the first (1); none starts after WITHIN
	$(GO) test ./integration/sim -run 'TestSim$$' -v -timeout 6h -sim.seeds=$(or $(SEEDS),1000) -sim.seed=$(or $(SEED),1) \
	  -sim.within=$(or $(WITHIN),0)

migration: ## data of ZooKeeper 3.4 to 3.9, one server and three, stopped and killed under load, taken over and given back (Debian: as interop, maven)
	$(GO) test -tags interop,soak -count=1 -v -timeout 60m -run '$(MIGRATION)' ./integration/migration
	$(GO) test -tags interop -count=1 -timeout 20m ./migration/learner

upgrade: ## upgrades and downgrades of three servers under load; needs the commit of integration/upgrade/releases.txt (Debian: as interop)
	$(GO) test -tags upgrade -count=1 -timeout 10m -run '$(UPGRADES)' ./integration/upgrade

monitoring: ## a real Prometheus sees faults of real servers begin and end; needs root (Debian: prometheus)
	$(GO) test -tags prometheus -count=1 -timeout 5m ./integration/monitoring

release-data: ## writes data directories with the last release, in integration/upgrade/testdata
	$(GO) test -tags upgrade -count=1 -run TestData ./integration/upgrade -write

suites: ## the tests of Apache ZooKeeper and Curator, on zk-lite and ZooKeeper; SELECTION=1, CLASSES, RECORD=1 (root; Debian: default-jdk-headless, maven, openssl)
	integration/suites/run $(CLASSES)

tenants: ## Kafka and other systems at work for DURATION (10m) while leaders are killed; ONLY=kafka,solr; RECORD=1 (Debian: default-jdk-headless, maven, clickhouse-server, patroni, postgresql)
	$(GO) test -tags tenants -count=1 -v -timeout 0 ./integration/tenants -tenants.for $(DURATION) -tenants.only '$(ONLY)' $(if $(RECORD),-update)

clients: ## versions of other people's clients; CLIENTS=kazoo, RECORD=1 (Debian: as interop, maven, npm, make; cargo; Maven Central, PyPI, npm, Go modules, crates.io)
	$(GO) test -tags clients -count=1 -timeout 60m -v -run 'TestClients/$(CLIENTS)' ./integration/clients $(if $(RECORD),-update)
	$(if $(RECORD),$(GO) test -count=1 ./integration/clients -update)

oracle: ## SCRIPTS (5000) random scripts, run by a real ZooKeeper and by zk-lite; SEED repeats them
	ZK_LITE_ORACLE_SCRIPTS=$(SCRIPTS) ZK_LITE_SEED=$(SEED) $(GO) test -tags interop -count=1 -v -timeout 0 \
	  -run TestConformance_Oracle ./integration/conformance

faults: ## partitions, bad networks, full, failing and lying disks, odd clocks, hostile clients; needs root
	$(GO) test -tags privileged -count=1 -timeout 20m -run '$(FAULTS)' ./integration/failover ./integration/cluster/...
	$(GO) test -tags soak -count=1 -timeout 20m -run '$(FAULTS)' ./integration/soak

hostile: ## a client that sends all requests at their largest, in all ways, to servers with little memory; RELEASE is an older commit to attack; needs root
	ZK_LITE_SEED=$(SEED) $(GO) test -tags privileged -count=1 -v -timeout 90m ./integration/hostile $(HOSTILE) -hostile.release '$(RELEASE)'

drill-backup: ## takes, verifies and restores a backup of a million znodes, with the times
	ZK_LITE_TEST_DRILL_ZNODES=1000000 $(GO) test -count=1 -v -timeout 30m -run TestBackup ./integration/drill

drill: ## a lost majority of three servers with a million znodes: zk-lite recover, from a backup and from a survivor, with the times
	ZK_LITE_TEST_DRILL_ZNODES=1000000 $(GO) test -count=1 -v -timeout 20m -run TestRecover_Drill ./integration/failover

soak: ## histories judged for DURATION (10m) under all faults; SEED repeats the faults, SERVERS (3); needs root
	ZK_LITE_SOAK_DURATION=$(DURATION) ZK_LITE_SEED=$(SEED) ZK_LITE_SOAK_SERVERS=$(SERVERS) $(GO) test -tags soak -count=1 -v -timeout 0 -run TestSoak ./integration/soak

edge: ## the soak's clients for DURATION (10m) at servers with a full tree and no descriptors to spare; needs root
	ZK_LITE_SOAK_DURATION=$(DURATION) ZK_LITE_SEED=$(SEED) $(GO) test -tags soak -count=1 -v -timeout 0 -run TestEdge ./integration/soak

soak-recipes: ## all recipes for DURATION (10m) while servers are killed and paused; SEED repeats a schedule
	ZK_LITE_SOAK=$(DURATION) ZK_LITE_SEED=$(SEED) $(GO) test -count=1 -v -timeout 0 ./integration/recipes

bench: ## benchmarks of every stage of a request: decode, order, propose, apply, watch, encode, flush
	$(GO) test -run '^$$' -bench . -benchtime 1s ./znode ./consensus/... ./watch ./session ./internal/... ./api/zk ./server

benchmarks: ## writes bench/results/DATE.md on a quiet machine, in about 35 minutes (Debian: zookeeper, default-jdk-headless, linux-perf)
	$(GO) run ./bench -suite servers,http,clients,growth -short
