# What one does here. `make` alone lists it.

.DEFAULT_GOAL := help
.PHONY: help setup build run redis test test-all fuzz lint format bench counts soak clean

# Port of `make redis`; the next free one if it is taken.
PORT ?= 6379
# How long `make soak` puts mail in.
MINUTES ?= 2
# How long `make fuzz` takes for each target.
FUZZ_SECONDS ?= 60

help: ## list what there is to do
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install what is missing on Debian (Redis, libclang, Node, tmux); needs root or sudo only for that
	@scripts/setup.sh

build: setup ## build the module (target/release/libmailrl.so) and the tool (target/release/mailrl)
	cargo build --release --locked -p mailrl -p mailrl-cli

run: setup ## a campaign and single mails through queue, two workers and brake, then without it; two minutes
	cargo build --release --locked -p mailrl -p mailrl-cli -p demo
	@target/release/demo --module target/release/libmailrl.so --mailrl target/release/mailrl --mail tests/mail

redis: setup ## start a Redis with the module and tell how to talk to it; Ctrl-C ends it
	cargo build --release --locked -p mailrl
	@scripts/redis.sh target/release/libmailrl.so $(PORT)

test: setup ## run every test; the module's also on each other server that is in target/servers
	cargo build --locked --workspace
	cargo test --locked --workspace
	@scripts/test-servers.sh

test-all: setup ## fetch the other servers that the module is tested on (Redis 8.0, 8.2, Valkey 8.1), then run every test
	@scripts/fetch-servers.sh
	@$(MAKE) --no-print-directory test

fuzz: setup ## fuzz arguments, values and sequences of calls, each for FUZZ_SECONDS (60)
	@fuzz/run.sh $(FUZZ_SECONDS)

soak: setup ## workers, mail and random faults together for MINUTES (2), then the books are balanced; SEED repeats a run
	cargo build --release --locked -p mailrl -p mailrl-cli -p soak
	@MAILRL_MODULE=$$PWD/target/release/libmailrl.so target/release/soak --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

lint: setup ## format, clippy and the compiler's checks of the example in Node, as CI does
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	cd fuzz && cargo fmt --check && cargo clippy --locked --release -- -D warnings
	cd examples/node && npm ci --silent && npm run --silent lint

format: ## format the source
	cargo fmt --all
	cd fuzz && cargo fmt

bench: setup ## what a reservation costs, beside PING, INCR and the Lua script; how long a fail-open takes; mails a second through the queue
	cargo bench --locked -p mailrl --bench server_time
	cargo bench --locked -p mailrl-client --bench fail_open
	cargo bench --locked -p mailrl-mailer --bench through_queue

counts: ## count the core's instructions for each kind of call; fails if they changed by more than 5 %, ACCEPT=1 takes them
	@scripts/setup.sh valgrind:valgrind
	@ACCEPT=$(ACCEPT) cargo bench --locked -p mailrl-core --bench counts

clean: ## remove what was built
	cargo clean
	cd fuzz && cargo clean
