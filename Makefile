# make demo and make test need only python3, pip, make and g++; each makes its own .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := pyproject.toml constraints.txt CMakeLists.txt $(wildcard native/*)
# pip reads these: the pinned versions hold for what is installed and for what the build uses.
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_BUILD_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test lint types architecture bench docs sanitize clean

demo: $(VENV)/demo.done
	$(BIN)/nary demo

test: $(VENV)/dev.done
	$(BIN)/python -m pytest -n auto

lint: $(VENV)/dev.done
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/dev.done
	$(BIN)/mypy

architecture: $(VENV)/dev.done
	$(BIN)/python -m pytest tests/test_architecture.py

bench: $(VENV)/dev.done
	$(BIN)/python benchmarks/decode.py
	$(BIN)/python benchmarks/search.py
	if [ -d "$${NARY_DATA:-../shared/data}" ]; then $(BIN)/python -m pip install --quiet lightgbm && \
	  $(BIN)/python benchmarks/letter.py && $(BIN)/python benchmarks/trees.py && \
	  $(BIN)/python benchmarks/trees_accuracy.py && $(BIN)/python benchmarks/linear.py && \
	  $(BIN)/python benchmarks/linear_accuracy.py; fi

docs: $(VENV)/dev.done
	$(BIN)/pdoc --docformat numpy --output-directory docs/_build nary

# The kernels' tests on a core built with AddressSanitizer and UndefinedBehaviorSanitizer.
sanitize: $(VENV)/dev.done
	PYTHON=$(CURDIR)/$(BIN)/python tests/sanitize.sh

clean:
	rm -rf build $(VENV)

# A Python without ensurepip makes an environment without pip; the outer pip then works on it.
$(BIN)/python:
	$(PYTHON) -m venv $(VENV) 2>/dev/null || { rm -rf $(VENV); $(PYTHON) -m venv --without-pip $(VENV); \
	  $(PYTHON) -m pip --python $(BIN)/python install --quiet pip; }

$(VENV)/demo.done: $(BIN)/python $(SOURCES)
	$(BIN)/python -m pip install --quiet --editable '.[cli]'
	touch $@

$(VENV)/dev.done: $(BIN)/python $(SOURCES)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@ $(VENV)/demo.done
