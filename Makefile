# What people and CI run, word for word. It needs python3 (3.11 to 3.13) and make; uv comes by itself.

export UV_PYTHON_DOWNLOADS := never

# A shim called uv may exist and fail, so uv itself is asked.
UV := $(shell uv --version >/dev/null 2>&1 && echo uv || echo .tools/bin/uv)
RUN := $(UV) run --locked --no-sync
LOCKED := pyproject.toml uv.lock
SEEDS ?= 20

.DEFAULT_GOAL := help
.PHONY: help demo test test-long check bench faults

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 12

demo: .venv/.demo  ## play three conversations through a broker and a database of their own
	@$(RUN) afterword demo

test: .venv/.dev  ## run the tests; ARGS="-k name" narrows them
	$(RUN) pytest -m "not long" $(ARGS)

test-long: .venv/.dev  ## run the tests that take minutes
	$(RUN) pytest -m long $(ARGS)

check: .venv/.dev  ## format, lint, types, layers, dependencies, dead code
	$(RUN) ruff format --check
	$(RUN) ruff check
	$(RUN) mypy
	$(RUN) pyright
	$(RUN) lint-imports
	$(RUN) deptry .
	$(RUN) vulture

bench: .venv/.dev  ## measure on this machine
	$(RUN) python -m benchmarks $(ARGS)

faults: .venv/.dev  ## kill the parts at random and check the promises; SEEDS=n rounds, ARGS="--seed n" for one
	$(RUN) python -m tests.faults --seeds $(SEEDS) $(ARGS)

# The demo needs no tool of a developer; what is there already stays.
.venv/.demo: $(LOCKED) | $(filter .tools/%,$(UV))
	$(UV) sync --locked --quiet --inexact --no-default-groups --extra embedded
	@touch $@

.venv/.dev: $(LOCKED) | $(filter .tools/%,$(UV))
	$(UV) sync --locked --quiet --extra embedded
	@touch .venv/.demo $@

.tools/bin/uv:
	python3 -m venv .tools
	.tools/bin/pip install --quiet 'uv>=0.13,<0.14'
