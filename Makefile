# Two commands do everything on a fresh machine: `make demo` and `make test`. `make help` lists all.
# A CPU-only torch on Linux:  make demo TORCH_INDEX=https://download.pytorch.org/whl/cpu

PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
TORCH_INDEX ?=
FAST    = -m "not slow and not peers and not integrations" -n 2 --dist loadfile --durations 40

.DEFAULT_GOAL := help
.PHONY: help demo test check format lint types coverage fix browser docs gallery docs-serve test-slow soak test-peers test-integrations bench bench-integrations peers rivals bench-rivals duel-environments duel dist sbom clean

help:  ## list the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-18s %s\n", $$1, $$2}'

demo: $(VENV)/.installed  ## load a published ELMo, then train one on a novel (about five minutes)
	$(BIN)/python examples/demo.py
	$(BIN)/python examples/sanguo.py

test: $(VENV)/.installed browser  ## run all tests but the slow ones (minutes)
	$(BIN)/python -m pytest $(FAST)

check: format lint types test  ## check format, lint, types, and run the tests; CI runs this

format: $(VENV)/.installed  ## check the format
	$(BIN)/ruff format --check .

lint: $(VENV)/.installed  ## check with the linter
	$(BIN)/ruff check .

types: $(VENV)/.installed  ## check the types of src (strict) and tests
	$(BIN)/mypy
	$(BIN)/mypy --config-file tests/mypy.ini

coverage: $(VENV)/.installed browser  ## run the same tests and print which lines they miss (a third slower)
	$(BIN)/python -m pytest $(FAST) --cov --cov-report term:skip-covered

fix: $(VENV)/.installed  ## format the code and apply the linter's fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

browser:  ## install chromium for the tests of the explorer, if apt can
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	  { apt-get update -qq; apt-get install -y -qq --no-install-recommends chromium; } >/dev/null 2>&1; } || \
	  echo "chromium is missing and could not be installed: the tests of the explorer are skipped."

docs: $(VENV)/.installed  ## build the manual as a web site in English and Chinese, and check its links
	$(BIN)/python docs/site/build.py

gallery: $(VENV)/.installed browser  ## draw every picture of the manual, in build/gallery (half an hour)
	$(BIN)/python docs/site/gallery.py

docs-serve: $(VENV)/.installed  ## build the manual and serve it on http://127.0.0.1:8001/
	$(BIN)/python docs/site/build.py --serve 8001

test-slow: $(VENV)/.installed  ## run the tests of large inputs and memory bounds
	$(BIN)/python -m pytest -m slow

soak: $(VENV)/.installed  ## run a server for an hour while workers are killed and the disk fills
	$(BIN)/python benchmarks/soak.py --minutes 60

bench: $(VENV)/.installed  ## measure tokens per second, latency and memory on this machine
	$(BIN)/python benchmarks/embed.py

PEERS_PYTHON ?= python3.11
peers:  ## install AllenNLP and simple_elmo in an environment of their own
	PYTHON="$(PEERS_PYTHON)" TORCH_INDEX="$(TORCH_INDEX)" sh benchmarks/peers/setup.sh .venv-peers

rivals: peers  ## also install flair and onnxruntime, each in an environment of its own
	PYTHON="$(PEERS_PYTHON)" TORCH_INDEX="$(TORCH_INDEX)" sh benchmarks/peers/setup.sh .venv-flair flair
	PYTHON="$(PEERS_PYTHON)" sh benchmarks/peers/setup.sh .venv-onnx onnx

bench-rivals: $(VENV)/.installed rivals  ## compare the speed with other ELMo programs, flair and BERT: make bench-rivals TEXT=tokenised.txt
	$(BIN)/python benchmarks/rivals.py "$(TEXT)" --page benchmarks/RESULTS.md

duel-environments:  ## install what the duel compares: flair; transformers, stanza, spaCy and gensim
	PYTHON="$(PEERS_PYTHON)" TORCH_INDEX="$(TORCH_INDEX)" sh benchmarks/peers/setup.sh .venv-flair flair
	PYTHON="$(PEERS_PYTHON)" TORCH_INDEX="$(TORCH_INDEX)" sh benchmarks/peers/setup.sh .venv-duel duel

duel: $(VENV)/.installed duel-environments  ## compare vectors made in equal CPU time: make duel DATA=folder (days; resumes)
	$(BIN)/python benchmarks/duel.py "$(DATA)" --page benchmarks/RESULTS.md

test-peers: $(VENV)/.installed peers  ## check that AllenNLP and simple_elmo read our files with the same vectors
	$(BIN)/python -m pytest -m peers

test-integrations: .venv-integrations/.installed  ## test the integrations with the heavy libraries, in an environment of their own
	.venv-integrations/bin/python -m pytest -m integrations tests/integrations

bench-integrations: .venv-integrations/.installed  ## measure what each integration adds to the time of the plain call
	.venv-integrations/bin/python benchmarks/integrations.py

DIST_PYTHONS ?= $(PYTHON)
dist: .venv-dist/.installed  ## build the sdist and the wheels in dist/, check them, and use them without a compiler or network
	.venv-dist/bin/python release/build.py --out dist
	.venv-dist/bin/python release/install.py dist $(foreach python,$(DIST_PYTHONS),--python $(python)) --torch-index "$(TORCH_INDEX)"

sbom: $(VENV)/.installed  ## write the bill of materials, which is in the wheels
	$(BIN)/python release/sbom.py

clean:  ## remove environments, caches and build products
	rm -rf $(VENV) .venv-integrations .venv-peers .venv-flair .venv-duel .venv-onnx .venv-dist demo build dist .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis

# The environment is made once, and again only when pyproject.toml or the C library changes.
NATIVE = hatch_build.py $(wildcard src/polyseme/model/fast/kernels/*.[ch])
$(VENV)/.installed: pyproject.toml $(NATIVE)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Polyseme needs Python 3.11 or later; $(PYTHON) is older. Try: make PYTHON=python3.11"; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
	  { echo "Creating $(VENV) failed. On Debian or Ubuntu: sudo apt-get install -y python3-venv"; exit 2; }
	@test -z "$(TORCH_INDEX)" || $(BIN)/python -m pip install -q "torch~=2.13.0" --index-url "$(TORCH_INDEX)"
	$(BIN)/python -m pip install -q -e ".[dev]"
	@touch $@

.venv-integrations/.installed: pyproject.toml $(NATIVE) tests/integrations/requirements.txt
	@test -x .venv-integrations/bin/python || $(PYTHON) -m venv .venv-integrations
	@test -z "$(TORCH_INDEX)" || .venv-integrations/bin/python -m pip install -q "torch==2.13.0" --index-url "$(TORCH_INDEX)"
	.venv-integrations/bin/python -m pip install -q -e ".[dev]" -r tests/integrations/requirements.txt
	@touch $@

.venv-dist/.installed: release/requirements.txt
	@test -x .venv-dist/bin/python || $(PYTHON) -m venv .venv-dist
	.venv-dist/bin/python -m pip install -q -r release/requirements.txt
	@touch $@
