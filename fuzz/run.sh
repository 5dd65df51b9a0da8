#!/usr/bin/env bash
# Runs the fuzz targets, each for a while, from the committed seeds; fails if one crashes.
#
# usage: fuzz/run.sh SECONDS [TARGET ...]
#
# Needs a nightly toolchain and a C++ compiler; installs cargo-fuzz if it is missing. What a run learns is kept in
# fuzz/corpus, a crash in fuzz/artifacts. FUZZ_TOOLCHAIN (nightly) chooses another toolchain.
set -euo pipefail
[ $# -ge 1 ] && [[ $1 =~ ^[0-9]+$ ]] || { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }
seconds=$1
shift
cd "$(dirname "${BASH_SOURCE[0]}")/.."
toolchain=${FUZZ_TOOLCHAIN:-nightly}
command -v cargo-fuzz > /dev/null || cargo install --locked cargo-fuzz
targets=("$@")
if [ ${#targets[@]} = 0 ]; then
  list=$(cargo "+$toolchain" fuzz list)
  mapfile -t targets <<< "$list"
fi

# All at first: they share what they are made of. Then as many at a time as there are processors.
if [ ${#targets[@]} = 1 ]; then cargo "+$toolchain" fuzz build "${targets[0]}"; else cargo "+$toolchain" fuzz build; fi

run() {
  local target=$1 folders=("fuzz/corpus/$1")
  mkdir -p "fuzz/corpus/$target" fuzz/artifacts
  [ -d "fuzz/seeds/$target" ] && folders+=("fuzz/seeds/$target")
  cargo "+$toolchain" fuzz run "$target" "${folders[@]}" -- -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
    -max_len=8192 -print_final_stats=1 > "fuzz/artifacts/$target.log" 2>&1 && echo "== $target, $seconds s: no crash" && return
  tail -n 60 "fuzz/artifacts/$target.log"
  echo "== $target FAILED; all it said: fuzz/artifacts/$target.log"
  return 1
}
export -f run
export toolchain seconds
# 123 where one of them fails.
printf '%s\n' "${targets[@]}" | xargs -P "$(nproc)" -I '{}' bash -c 'run {}'
