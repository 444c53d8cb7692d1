#!/usr/bin/env bash
# Builds the core with AddressSanitizer and UndefinedBehaviorSanitizer in a folder of its own and runs the kernels' tests.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=${PYTHON:-python3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$python" -m pip wheel "$root" --quiet --no-deps --wheel-dir "$folder" \
  --config-settings=build-dir="$folder/build" --config-settings=cmake.define.NARY_SANITIZE=ON \
  --config-settings=install.strip=false
"$python" -m zipfile -e "$folder"/nary-*.whl "$folder/site"

# The interpreter itself is not instrumented, so the runtimes come first; what it leaks is not ours.
runtimes="$(g++ -print-file-name=libasan.so):$(g++ -print-file-name=libubsan.so):$(g++ -print-file-name=libstdc++.so)"
export ASAN_OPTIONS=detect_leaks=0:abort_on_error=1 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
export PYTHONPATH="$folder/site" PYTHONMALLOC=malloc NARY_PATIENCE=20  # instrumented code is slow
cd "$root"
# An editable nary would be found before PYTHONPATH: its finder is taken out, and the core that is tested is checked.
LD_PRELOAD="$runtimes" "$python" - "$folder" -q -p no:cacheprovider "$@" \
  tests/test_kernels.py tests/test_codes.py tests/test_matrix.py tests/test_decoders.py tests/test_binning.py \
  tests/test_trees.py tests/test_linear_kernels.py tests/test_linear.py -k "not out_of_memory" <<'PYTHON'
import sys

sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in type(finder).__module__]
folder = sys.argv.pop(1)
import pytest

from nary import _native

assert _native.__file__.startswith(folder), _native.__file__
sys.exit(pytest.main(sys.argv[1:]))
PYTHON
echo "no error found by the sanitizers"
