# One-word commands for working on mummergpu. They use the environment in .venv.

PYTHON ?= python3
BIN := .venv/bin

.PHONY: dev test lint format bench wheel clean

dev: $(BIN)/ruff

$(BIN)/ruff: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --editable ".[dev]"
	touch $@

test: dev
	$(BIN)/pytest

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
	$(BIN)/python -m build --wheel

clean:
	rm -rf .venv build dist example .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
