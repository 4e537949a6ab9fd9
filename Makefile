# Everything for a machine without ROS 2. `make help` lists what there is.
#
# In a ROS 2 distribution the package is built with colcon like any other; see README.md.

SHELL := /bin/bash
ROS ?= kilted
export ROS
ARGS ?=

.PHONY: help setup demo test lint format clean

help:  ## list the targets (the default)
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "%-8s %s\n", $$1, $$2 }' Makefile
	@echo 'ROS=kilted (default) or ROS=jazzy chooses the ROS 2 wheels; ARGS="..." goes to the program.'

setup:  ## virtual environment and build; what is there already is kept
	@scripts/setup.sh $(ROS)

demo: setup  ## record a synthetic drive, run the node on it, write out/demo/
	@. scripts/env.sh && alpamayo_demo $(ARGS)

test: setup  ## lint, types and all tests (ARGS="test/sensing -k name")
	@scripts/setup_npu.sh $(ROS)
	@scripts/test.sh $(ARGS)

lint: setup  ## ruff and mypy only
	@. scripts/env.sh && ruff check . && ruff format --check . && mypy

format: setup  ## let ruff rewrite the sources
	@. scripts/env.sh && ruff check --fix . && ruff format .

clean:  ## remove what builds, tests and the demo made; .venv* stays
	rm -rf build build-jazzy install install-jazzy log out .mypy_cache .pytest_cache .ruff_cache
	find alpamayo_ros test -name __pycache__ -type d -prune -exec rm -rf {} +
