"""lit's configuration: ``lit -j2 test`` runs the file tests with the interpreter that runs lit.

In RUN lines ``devscope-opt``, ``devscope``, ``filecheck`` and ``%python`` are the tools of that interpreter's
environment; ``not`` is lit's own.
"""

# pyright: reportUndefinedVariable=false
# ruff: noqa: F821

import importlib
import os
import shlex
import sys
from pathlib import Path

import lit.formats
import lit.TestRunner

ROOT = Path(__file__).resolve().parent.parent
# -P: what lies in the directory where a test runs must not shadow a package.
PYTHON = f"{shlex.quote(sys.executable)} -P"
TIMEOUT_S = 300

config.name = "devscope"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
# Programs of test/e2e are inputs of its pytest cases; Inputs directories hold what tests read.
config.excludes = ["e2e", "Inputs"]
config.test_source_root = str(ROOT / "test")
config.test_exec_root = str(ROOT / "build" / "lit")

# Substitutions are regular expressions; a tool's name inside a path or a longer word stays as it is.
TOOLS = {
    "devscope-opt": "devscope.cli.opt",
    "devscope": "devscope.cli.main",
    "filecheck": "filecheck.main",
}
for tool, module in TOOLS.items():
    config.substitutions.append((rf"(?<![\w./%-]){tool}(?![\w./-])", f"{PYTHON} -m {module}"))
config.substitutions.append(("%python", PYTHON))
sys.path.append(config.test_source_root)
lit.TestRunner.subprocess.Popen = importlib.import_module("preloaded").preload(list(TOOLS.values()))

# The driver's and devscope's caches live under the home directory; drivers are found through the others.
for variable in ("HOME", "XDG_CACHE_HOME", "OCL_ICD_VENDORS", "OCL_ICD_FILENAMES", "DEVSCOPE_MLIR"):
    if variable in os.environ:
        config.environment[variable] = os.environ[variable]
# Schedules that were tuned on this machine are in it.
config.environment["DEVSCOPE_CACHE_DIR"] = str(ROOT / "build" / "lit" / "cache")
config.environment["NO_COLOR"] = "1"
config.environment["COLUMNS"] = "110"

if lit_config.maxIndividualTestTimeIsSupported[0]:
    config.maxIndividualTestTime = TIMEOUT_S
