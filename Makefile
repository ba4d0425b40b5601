# `make help` lists what there is to do. `make run` and `make test` need Go alone; what else a target needs, it installs
# under .tools/ itself.

.SHELLFLAGS := -eu -c
.DEFAULT_GOAL := help

EVENTS   ?=
RULES    ?=
FUZZTIME ?= 10s
ENV      ?= default
TESTS    ?= ./...

# The race detector needs a C compiler; go says 0 where there is none.
RACE := $(if $(filter 1,$(shell go env CGO_ENABLED)),-race)

VENV := .tools/venv
SAM  := SAM_CLI_TELEMETRY=0 AWS_DEFAULT_REGION=$${AWS_DEFAULT_REGION:-us-east-1} $(VENV)/bin/sam

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: ## count real events end to end on this machine; EVENTS=file and RULES=file take your own
	@go run ./shared/cmd/abacus run $(if $(EVENTS),--events '$(EVENTS)') $(if $(RULES),--rules '$(RULES)')

.PHONY: local
local: ## keep the whole suite up on this machine, until interrupted; prints what to set to reach it
	@go run ./shared/cmd/abacus local $(if $(RULES),--rules '$(RULES)')

.PHONY: test
test: ## run every test; TESTS=./shared/merge/... runs some, TESTFLAGS=-v says more
	$(if $(RACE),,@echo 'no C compiler here: testing without the race detector')
	go test $(RACE) -shuffle=on $(TESTFLAGS) $(TESTS)

.PHONY: check
check: ## check formatting, vet, staticcheck, the direction of imports, the length of files and lines
	@files=$$(gofmt -l functions shared); [ -z "$$files" ] || { echo "gofmt would change: $$files"; exit 1; }
	go vet ./...
	go tool staticcheck ./...
	go test ./shared
	@find functions shared -name '*.go' -exec awk 'FNR == 501 {print FILENAME ": longer than 500 lines"; bad = 1} \
		length > 140 && FILENAME !~ /_test.go$$/ {print FILENAME ":" FNR ": longer than 140"; bad = 1} END {exit bad}' {} +

.PHONY: oracle
oracle: ## hold the stand-ins against other implementations of DynamoDB and Kinesis; needs node and python3
	bash shared/local/oracle/run

.PHONY: fuzz
fuzz: ## fuzz every decoder for FUZZTIME each (default 10s)
	@grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' functions shared | sed 's/:func / /' | sort | \
	while read -r file target; do \
		echo "== $$target in $$(dirname "$$file")"; \
		go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "./$$(dirname "$$file")" || exit 1; \
	done

.PHONY: torture
torture: ## count under SCHEDULES seeded schedules of faults (default 200), the first of them SEED
	@go run ./shared/cmd/abacus torture $(if $(SCHEDULES),--schedules $(SCHEDULES)) $(if $(SEED),--seed $(SEED))

.PHONY: mutants
mutants: ## break the core in known ways, one by one, and fail unless the tests notice each; ONLY=expression takes some
	@go run ./shared/local/mutants $(if $(ONLY),-only '$(ONLY)')

.PHONY: bench
bench: ## print requests, write units, time and memory beside a hand-written reference
	@go run ./shared/cmd/abacus bench

.PHONY: microbench
microbench: ## run the benchmarks of single functions; TESTS=./shared/envelope runs some
	go test -run '^$$' -bench . -benchmem $(TESTS)

.PHONY: validate
validate: $(VENV)/.installed ## check the template with cfn-lint and SAM, build it, and look at what was built
	$(VENV)/bin/cfn-lint template.yaml
	$(SAM) validate --lint
	$(SAM) build
	go test ./shared/deploy -run TestBuilt -v -args -built=$(CURDIR)/.aws-sam/build

.PHONY: build
build: $(VENV)/.installed ## build the functions and the rule layer for Lambda, with SAM
	$(SAM) build --config-env $(ENV)

.PHONY: deploy
deploy: build ## deploy to AWS, after showing what will change; ENV=prod takes that part of samconfig.toml
	SAM_CLI_TELEMETRY=0 $(VENV)/bin/sam deploy --config-env $(ENV)

.PHONY: clean
clean: ## remove what was built and installed in this folder
	rm -rf .aws-sam .build .tools

$(VENV)/.installed: .ci/requirements.txt
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install --disable-pip-version-check -r $<
	@touch $@

# SAM calls the three targets below, one for each resource that it builds. The same source gives the same bytes on any
# machine, in any folder and at any commit, so a change of the rules alone deploys no code.
.PHONY: build-Kinesis build-Sqs build-RulesLayer
build-Kinesis: FUNCTION := kinesis
build-Sqs: FUNCTION := sqs
build-Kinesis build-Sqs:
	CGO_ENABLED=0 GOOS=linux GOARCH=arm64 go build -buildvcs=false -trimpath -tags lambda.norpc -ldflags '-s -w' \
		-o "$(ARTIFACTS_DIR)/bootstrap" ./functions/$(FUNCTION)

build-RulesLayer:
	cp functions/counters.yaml "$(ARTIFACTS_DIR)/counters.yaml"
