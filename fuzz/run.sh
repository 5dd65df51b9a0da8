#!/usr/bin/env bash
# Runs the fuzz targets, each for a while, from the committed seeds; fails on the first crash.
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
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(cargo "+$toolchain" fuzz list)

for target in "${targets[@]}"; do
  mkdir -p "fuzz/corpus/$target"
  folders=("fuzz/corpus/$target")
  [ -d "fuzz/seeds/$target" ] && folders+=("fuzz/seeds/$target")
  echo "== $target, $seconds s"
  cargo "+$toolchain" fuzz run "$target" "${folders[@]}" -- -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
    -max_len=8192 -print_final_stats=1
done
