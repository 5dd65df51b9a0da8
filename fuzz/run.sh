#!/usr/bin/env bash
# Runs the fuzz targets, each for a while, from the committed seeds; fails on the first crash.
#
# usage: fuzz/run.sh SECONDS [TARGET ...]
#
# Needs a C++ compiler, and nothing but the pinned toolchain. What a run learns is kept in fuzz/corpus, a crash in
# fuzz/artifacts. As many targets run at a time as the machine has processors; FUZZ_JOBS says otherwise.
# FUZZ_TOOLCHAIN=nightly adds the address sanitizer.
set -euo pipefail
[ $# -ge 1 ] && [[ $1 =~ ^[0-9]+$ ]] || { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }
seconds=$1
shift
cd "$(dirname "${BASH_SOURCE[0]}")"
targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(sed -n '/^\[\[bin\]\]/,/^path/s/^name = "\(.*\)"/\1/p' Cargo.toml)

# As cargo-fuzz builds them.
flags="--cfg fuzzing -Cpasses=sancov-module"
for flag in sanitizer-coverage-level=4 sanitizer-coverage-inline-8bit-counters sanitizer-coverage-pc-table \
  sanitizer-coverage-trace-compares simplifycfg-branch-fold-threshold=0; do
  flags+=" -Cllvm-args=-$flag"
done
cargo=(cargo)
if [ -n "${FUZZ_TOOLCHAIN:-}" ]; then cargo+=("+$FUZZ_TOOLCHAIN"); flags+=" -Zsanitizer=address"; fi
host=$(rustc -vV | sed -n 's/^host: //p')
# With a target, so that build scripts and macros are not instrumented.
RUSTFLAGS="$flags" CARGO_TARGET_DIR=target "${cargo[@]}" build --release --target "$host" "${targets[@]/#/--bin=}"

run() {
  local target=$1 folders
  mkdir -p "corpus/$target" "artifacts/$target"
  folders=("corpus/$target")
  [ -d "seeds/$target" ] && folders+=("seeds/$target")
  "target/$host/release/$target" "-artifact_prefix=artifacts/$target/" -max_total_time="$seconds" -timeout=10 \
    -rss_limit_mb=2048 -max_len=8192 -print_final_stats=1 "${folders[@]}" > "artifacts/$target.log" 2>&1
}
export -f run
export seconds host
rm -rf artifacts/failed
code=0
printf '%s\n' "${targets[@]}" | xargs -P "${FUZZ_JOBS:-$(nproc)}" -I '{}' bash -c \
  'if run {}; then echo "== {}, $seconds s: no crash"; else echo "== {} FAILED"; touch artifacts/failed; fi' || code=$?
for target in "${targets[@]}"; do
  printf '\n== %s\n' "$target"
  grep -E '^(stat::|SUMMARY|==[0-9]+==|thread .* panicked|MS:|artifact_prefix|Test unit)|BINGO' -A 2 "artifacts/$target.log" | tail -n 25 || true
done
if [ -e artifacts/failed ]; then rm artifacts/failed; exit 1; fi
exit "$code"
