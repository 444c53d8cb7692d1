#!/usr/bin/env bash
# Builds the core with AddressSanitizer and UndefinedBehaviorSanitizer in a folder of its own and runs the kernels' tests.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=${PYTHON:-python3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$python" -m pip wheel "$root" --quiet --no-deps --wheel-dir "$folder" \
  --config-settings=build-dir="$folder/build" --config-settings=cmake.define.NARY_SANITIZE=ON \
  --config-settings=cmake.build-type=Debug --config-settings=install.strip=false
"$python" -m zipfile -e "$folder"/nary-*.whl "$folder/site"

# The interpreter itself is not instrumented, so the runtimes come first; leaks of the interpreter are not ours.
runtimes="$(g++ -print-file-name=libasan.so):$(g++ -print-file-name=libubsan.so):$(g++ -print-file-name=libstdc++.so)"
cd "$root"
for level in $(PYTHONPATH="$folder/site" LD_PRELOAD="$runtimes" ASAN_OPTIONS=detect_leaks=0 "$python" -S -c \
  "import sys; sys.path[:0] = ['$folder/site']; from nary import _native; print(*_native.levels())" 2>/dev/null || echo ""); do
  echo "level $level"
done
PYTHONPATH="$folder/site" LD_PRELOAD="$runtimes" PYTHONMALLOC=malloc \
  ASAN_OPTIONS=detect_leaks=0:abort_on_error=1 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 \
  "$python" -c "import nary._native as core; assert core.__file__.startswith('$folder'), core.__file__"
PYTHONPATH="$folder/site" LD_PRELOAD="$runtimes" PYTHONMALLOC=malloc \
  ASAN_OPTIONS=detect_leaks=0:abort_on_error=1 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 \
  "$python" -m pytest -q -p no:cacheprovider -p no:xdist tests/test_kernels.py tests/test_codes.py tests/test_decoders.py "$@"
