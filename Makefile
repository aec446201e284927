# One-word commands for working on mummergpu. They use the environment in .venv.

PYTHON ?= python3
BIN := .venv/bin

FUZZ_TARGETS := records detection index_header programs
FUZZ_SECONDS ?= 300

.PHONY: dev test test-ci test-all bounds fuzz lint format bench docs man wheel packaging clean

dev: $(BIN)/ruff

$(BIN)/ruff: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --editable ".[dev]"
	touch $@

# The quick tier, or that of CI where the package or the kernels differ from main.
test: dev
	$(BIN)/pytest $$(git diff --quiet main -- mummergpu kernels 2> /dev/null || echo --ci)

test-ci: dev
	$(BIN)/pytest --ci

test-all: dev
	HYPOTHESIS_PROFILE=thorough $(BIN)/pytest --all --timeout=1800

bounds: dev
	NUMBA_BOUNDSCHECK=1 MUMMERGPU_CACHE_DIR=$(CURDIR)/.fuzz/bounds $(BIN)/pytest --all \
		--timeout=1800 tests/fuzz tests/property tests/parity

fuzz: dev
	$(BIN)/pip install --quiet --editable ".[dev,fuzz]"
	cd tests && for target in $(FUZZ_TARGETS); do \
		../$(BIN)/python -m fuzz.run $$target --seconds $(FUZZ_SECONDS) || exit 1; done

docs: dev
	$(BIN)/pip install --quiet --editable ".[docs]"
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

man: dev
	mkdir -p build
	cd docs && ../$(BIN)/python -m generate.manual_page > ../build/mummergpu.1

lint: dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: dev
	for script in $(wildcard benchmarks/*.py); do $(BIN)/python $$script || exit 1; done

wheel: dev
	rm -rf build/images
	trap 'rm -rf build/images' EXIT; \
	for level in x86-64-v3 x86-64-v2; do \
		MUMMERGPU_CACHE_DIR=$(CURDIR)/build/images $(BIN)/mummergpu warmup --cpu $$level || exit 1; \
	done; \
	$(BIN)/python -m build --wheel

packaging: dev
	$(BIN)/pip install --quiet --editable ".[dev,packaging]"
	MUMMERGPU_REQUIRE_PACKAGING=1 $(BIN)/pytest tests/packaging

clean:
	rm -rf .venv build dist example .mypy_cache .pytest_cache .ruff_cache .hypothesis .fuzz
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
