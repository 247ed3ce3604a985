# Two commands do everything on a fresh machine: `make demo` and `make test`.
# A CPU-only torch on Linux:  make demo TORCH_INDEX=https://download.pytorch.org/whl/cpu

PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
TORCH_INDEX ?=

.PHONY: demo test browser test-slow test-peers check format lint types bench bench-peers peers clean

demo: $(VENV)/.installed  ## a published ELMo, exact; then a novel becomes an ELMo, in about five minutes
	$(BIN)/python examples/demo.py
	$(BIN)/python examples/sanguo.py

test: $(VENV)/.installed browser  ## everything that runs in minutes
	$(BIN)/python -m pytest -m "not slow and not peers" -n 2 --dist loadfile

browser:  ## chromium, for the tests of the explorer, where apt can install it
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	  { apt-get update -qq; apt-get install -y -qq --no-install-recommends chromium; } >/dev/null 2>&1; } || \
	  echo "There is no chromium, and it could not be installed: the tests of the explorer's page are skipped."

test-slow: $(VENV)/.installed  ## large inputs and memory bounds
	$(BIN)/python -m pytest -m slow

check: $(VENV)/.installed format lint types test  ## format, lint, types, tests

format: $(VENV)/.installed
	$(BIN)/ruff format --check .

lint: $(VENV)/.installed
	$(BIN)/ruff check .

types: $(VENV)/.installed
	$(BIN)/mypy

bench: $(VENV)/.installed  ## tokens per second, latency and memory
	$(BIN)/python benchmarks/embed.py

bench-peers: $(VENV)/.installed peers  ## the same beside AllenNLP and simple_elmo, in one run
	$(BIN)/python benchmarks/embed.py --peers --precisions fp32 int8 --batches 1 32 --rounds 1 --repeats 5 \
	  --results benchmarks/RESULTS.md --picture benchmarks/embed.png

PEERS_PYTHON ?= python3.11
peers:  ## AllenNLP and simple_elmo in an environment of their own, to compare with
	PYTHON="$(PEERS_PYTHON)" TORCH_INDEX="$(TORCH_INDEX)" sh benchmarks/peers/setup.sh .venv-peers

test-peers: $(VENV)/.installed peers  ## files that we write open in the peers, with the same vectors
	$(BIN)/python -m pytest -m peers

clean:
	rm -rf $(VENV) .venv-peers demo build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

# The environment is made once and again only when pyproject.toml or the C library changes.
NATIVE = hatch_build.py $(wildcard src/polyseme/model/kernels/*.[ch])
$(VENV)/.installed: pyproject.toml $(NATIVE)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Polyseme needs Python 3.11 or later; $(PYTHON) is older. Say: make PYTHON=python3.11"; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
	  { echo "Making $(VENV) failed. On Debian or Ubuntu: sudo apt-get install -y python3-venv"; exit 2; }
	@test -z "$(TORCH_INDEX)" || $(BIN)/python -m pip install -q "torch~=2.13.0" --index-url "$(TORCH_INDEX)"
	$(BIN)/python -m pip install -q -e ".[dev]"
	@touch $@
