#!/bin/bash
# The GPU tests and benchmarks of the kernels in one go, in about ten minutes.
#
#     benchmarks/gpu.sh [WHEELS]
#
# WHEELS is a folder of wheels for a machine without network: they are installed into a folder
# of their own first. Without it, the package and mummergpu[cuda] must be importable. The
# program compute-sanitizer is used where it is on the PATH. Results go to benchmarks/results/.
set -euo pipefail
cd "$(dirname "$0")/.."
site=$(mktemp -d)
trap 'rm -rf "$site"' EXIT
if [ $# -gt 0 ]; then
    python3 -m pip install -q --no-index --no-deps --no-compile --target "$site/wheels" "$1"/*.whl
    export PYTHONPATH="$site/wheels:$PWD${PYTHONPATH:+:$PYTHONPATH}"
fi
export PYTHONPATH="$PWD/tests${PYTHONPATH:+:$PYTHONPATH}"
export MUMMERGPU_CACHE_DIR="${MUMMERGPU_CACHE_DIR:-$site/cache}"
folder="${WORKLOADS:-$site/workloads}"

python3 -m mummergpu doctor
echo "== tests on the device"
MUMMERGPU_REQUIRE_GPU=1 timeout 420 python3 -m pytest -q -n0 -m gpu -p no:cacheprovider -p no:benchmark tests/gpu
# The bindings look up calls that the driver may not have: those answers are no errors of ours.
if command -v compute-sanitizer > /dev/null; then
    for tool in memcheck racecheck initcheck; do
        echo "== compute-sanitizer $tool"
        timeout 100 compute-sanitizer --tool "$tool" --report-api-errors no --error-exitcode 9 \
            python3 tests/gpu/small_run.py | tail -3
    done
fi
echo "== the four workloads, both strands: cuda beside cpu"
for name in LMONO SSUIS HSYNTH CBRIGG; do
    [ -e "$folder/$name/reads.fq" ] ||
        python3 -m mummergpu workload "$name" -o "$folder/$name" 2> /dev/null
    length=$(python3 -c "from mummergpu.workload.declaration import load_declaration as d; \
print(d('$name').minimum_length)")
    reads=("$folder/$name/reference.fa" "$folder/$name/reads.fq")
    for run in "cuda tree" "cuda kmer" "cpu kmer"; do
        python3 -m mummergpu -q --backend "${run% *}" --search "${run#* }" -b -l "$length" \
            "${reads[@]}" | sha256sum > "$site/$run"
    done
    cmp "$site/cuda tree" "$site/cpu kmer" && cmp "$site/cuda kmer" "$site/cpu kmer" &&
        echo "$name: the same bytes"
done
echo "== kernels"
python3 benchmarks/gpu_kmer.py --folder "$folder"
python3 benchmarks/gpu_kernels.py --folder "$folder" "${@:2}"
