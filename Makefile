# The day-to-day commands; each does its own set-up. What they do lies in scripts/ and CMakePresets.json.
PREFIX ?= /usr/local
SEEDS ?= 20000
SECONDS_EACH ?= 60

.PHONY: help build test demo bench install format lint fuzz swarm clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' Makefile

build: ## the command and the libraries, in build/release
	@scripts/setup build
	@scripts/build release

test: ## everything: tests in four builds, sanitizers included; ends with `N passed, N failed`
	@scripts/setup build test
	@scripts/test

demo: ## trains with stragglers under three protocols, and draws what they do about it
	@scripts/setup build
	@scripts/build release rubato
	@scripts/demo

bench: ## measurements, as ratios; against LIBLINEAR and scikit-learn too
	@scripts/setup build bench
	@scripts/build release rubato
	@scripts/bench

install: ## to PREFIX (/usr/local), under DESTDIR if set
	@scripts/setup build
	@scripts/build release
	@cmake --install build/release --prefix "$(PREFIX)"

format: ## rewrites the C files with clang-format
	@scripts/setup lint
	@scripts/lint format

lint: ## clang-format, clang-tidy, shellcheck and the man page, without changing anything
	@scripts/setup build test lint
	@scripts/lint

fuzz: ## each decoder and reader against random bytes, for SECONDS_EACH (60)
	@scripts/setup build test
	@scripts/fuzz "$(SECONDS_EACH)"

swarm: ## SEEDS (20000) random configurations with faults in the simulator, every guarantee checked
	@scripts/setup build
	@scripts/build release rubato
	@build/release/rubato swarm --seeds "$(SEEDS)"

clean: ## removes build/
	@rm -rf build
