#!/usr/bin/env bash
# An installed tree as a user meets it: made, moved, run where neither the build nor its LibTorch can be seen, and built against from outside.
# install_test.sh BUILD_FOLDER
set -uo pipefail
here=$(realpath "$(dirname "$0")")
source=$(realpath "$here/../..")
build=$(realpath "$1")
. "$here/../cli/commands_support.sh" "$build/bin/kedge"
fail() {
  echo "FAILED: line ${BASH_LINENO[0]}: $1"
  failures=$((failures + 1))
}
built_torch=$(realpath "$(sed -n 's/^KEDGE_TORCH:PATH=//p' "$build/CMakeCache.txt")")
# A CUDA build's tree has a link to the LibTorch that it was built with.
cuda=$(sed -n 's/^KEDGE_CUDA:BOOL=//p' "$build/CMakeCache.txt")
SECONDS=0
mkdir -p made/lib/kedge other_torch && ln -s "$folder/other_torch" made/lib/kedge/torch  # as an earlier install of a CUDA build leaves it
cmake --install "$build" --prefix "$folder/made" --strip >install.log 2>&1 || { tail install.log; fail 'cmake --install'; exit 1; }
echo "installed in $SECONDS s: $(du -sh made | cut -f 1), of which LibTorch $(du -sh made/lib/kedge/torch | cut -f 1) (its headers $(du -sh made/lib/kedge/torch/include | cut -f 1))"
[ -z "$(ls -A other_torch)" ] || fail "it was written into somebody else's LibTorch"
mkdir elsewhere && mv made elsewhere/kedge
tree=$folder/elsewhere/kedge
kedge=$tree/bin/kedge

# What is there
for file in bin/kedge lib/libkedge.a lib/libkedge_plain.a include/kedge/algo/online/reinforce.h lib/cmake/kedge/kedge{Config,ConfigVersion,Targets}.cmake \
  lib/kedge/torch/lib/libtorch_cpu.so lib/kedge/torch/include/ATen/core/Tensor.h share/kedge/{LICENSE,configs/tiny/sft.yaml,docs/install.md,examples/gsm8k/run.sh,scripts/quickstart}; do
  [ -s "$tree/$file" ] || fail "no $file"
done
[ -x "$tree/share/kedge/examples/gsm8k/run.sh" ] || fail 'a script that cannot be run'
links=$(find "$tree" -type l)
if [ "$cuda" = ON ]; then
  [ "$links" = "$tree/lib/kedge/torch" ] && [ "$(realpath "$links")" = "$built_torch" ] || fail "not the one link to $built_torch: $links"
  hide=("$build")
  allowed="$(dirname "$built_torch")|/usr/local/cuda[^/]*"
else
  [ -z "$links" ] || fail "links: $links"
  ls "$tree"/share/kedge/licenses/torch/* >/dev/null || fail "no licence beside torch's libraries"
  # Not the folder around LibTorch: a Python's may hold cmake too.
  hide=("$build" "$built_torch")
  [ ! -d "$(dirname "$built_torch")/nvidia" ] || hide+=("$(dirname "$built_torch")/nvidia")
  allowed="$tree/lib/kedge/torch/lib"
fi
# Where a path begins: a checkout in /kedge is not what share/kedge/ names.
here_paths=$(printf '%s\n' "$build" "$source/" "$built_torch" "$folder/made" | sed 's/[][\.*^$+?(){}|]/\\&/g' | paste -sd '|')
found=$(grep -rIlE -e "(^|[^[:alnum:]_./}~-])($here_paths)" "$tree/lib/cmake" "$tree/share" "$tree/include")
[ -z "$found" ] || fail "files that name a folder of this machine: $found"
grep -qE -- '-W(all|extra|error)' "$tree"/lib/cmake/kedge/*.cmake && fail 'warnings of our own are asked of others'

if [ -e "$source/cli/completion.h" ]; then
  for file in bash-completion/completions/kedge zsh/site-functions/_kedge fish/vendor_completions.d/kedge.fish; do
    [ -s "$tree/share/$file" ] || fail "no share/$file"
  done
fi

# Every library is the tree's or the system's.
ldd "$kedge" >ldd.txt || fail 'ldd'
grep 'not found' ldd.txt && fail 'libraries are not found'
strangers=$(awk '$2 == "=>" { print $3 }' ldd.txt | xargs realpath | grep -vE "^($allowed|/usr/lib|/lib)/")
[ -z "$strangers" ] || fail "libraries from elsewhere: $strangers"
grep -qF "=> $tree/bin/../lib/kedge/torch/lib/libtorch_cpu.so" ldd.txt || fail "not the tree's own libtorch: $(cat ldd.txt)"
grep 'libmpi' ldd.txt && fail 'a machine without MPI could not run it'
packages=$("$source/scripts/packages_of" "$kedge") || fail 'packages_of'
wanted=(libc6 libyaml-cpp zlib1g)
[ "$("$kedge" doctor --json | sed -nE 's/.*"MPI": *"(none)?.*/\1/p')" = none ] || wanted+=(openmpi-bin)
for package in "${wanted[@]}"; do
  grep -q "^$package" <<<"$packages" || fail "$package is no package that the program needs: $packages"
done

# hidden COMMAND...: with the folders of the build covered by empty ones, where that is allowed.
if unshare -m mount -t tmpfs none "$folder" 2>/dev/null; then
  printf 'for folder in %s; do mount -t tmpfs none "$folder" || exit 99; done\nexec "$@"\n' "$(printf '%q ' "${hide[@]}")" >hide.sh
  hidden() { unshare -m bash "$folder/hide.sh" "$@"; }
  for one in "${hide[@]}"; do
    [ -z "$(hidden ls -A "$one")" ] || fail "$one can still be seen"
  done
else
  echo 'not checked here: that nothing outside the tree is used (this user may not mount folders); ldd above says so'
  hidden() { "$@"; }
fi
expect 0 '^kedge [0-9]' hidden "$kedge" --version
make_letters letters
expect 0 '"parameters"' hidden "$kedge" init lm --shape tiny --tokenizer letters --threads 1
expect 0 '"response": ' hidden "$kedge" generate --model lm --text 'bb' --max-new-tokens 3 --threads 1

# The tarball of it: unpacked elsewhere it has every library but those of the C and C++ compilers, the licences of all, and a quickstart that builds nothing.
if [ "$cuda" != ON ]; then
  SECONDS=0
  expect 0 'kedge-[0-9.]*-linux-[a-z0-9_]*\.tar\.gz' "$source/scripts/package" --tree "$tree" --out "$folder/packages" --level 1
  [ "$(ls packages)" = "$(basename packages/kedge-*-linux-"$(uname -m)".tar.gz)" ] || fail "not one tarball: $(ls packages)"
  mkdir unpacked && tar xf packages/*.tar.gz -C unpacked || fail 'it cannot be unpacked'
  echo "packed and unpacked in $SECONDS s: $(du -h packages/*.tar.gz | cut -f 1), $(du -sh unpacked | cut -f 1)"
  unpacked=$(realpath unpacked/kedge-*)
  ldd "$unpacked/bin/kedge" >ldd.txt
  strangers=$(awk '$2 == "=>" { print $1, $3 }' ldd.txt | grep -vE " $unpacked/|^(libc|libm|libdl|librt|libpthread|libutil|libstdc\+\+|libgcc_s)\.so")
  [ -z "$strangers" ] || fail "libraries that a bare system may not have: $strangers"
  licences=(libyaml-cpp zlib1g libboost nlohmann-json3-dev torch)
  for one in libpcre2-8 libutf8proc; do
    # A static library of another prefix belongs to no package that would say what its licence is.
    if [ -n "$(find "$unpacked/lib/kedge/lib" -name "$one*")" ]; then licences+=("$one"); else echo "not checked here: the licence of $one, which is compiled in"; fi
  done
  for one in "${licences[@]}"; do
    [ -n "$(find "$unpacked"/share/kedge/licenses/"$one"* -type f 2>/dev/null)" ] || fail "no licence of $one"
    grep -q "^$one" "$unpacked/share/kedge/licenses/README.txt" || fail "$one is not listed among the licences"
  done
  [ -z "$(find "$unpacked" -name '*.a' -o -name '*.h' -o -name '*.cmake')" ] || fail 'what only a compiler reads is packed'
  newest=$(objdump -T "$unpacked/bin/kedge" "$unpacked"/lib/kedge/*/*.so* "$unpacked"/lib/kedge/torch/lib/* 2>/dev/null | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -n 1)
  ours=GLIBC_$(getconf GNU_LIBC_VERSION | cut -d ' ' -f 2)
  [ "$(printf '%s\n' "$newest" "$ours" | sort -V | tail -n 1)" = "$ours" ] || fail "it asks for a newer C library than this machine's: $newest"
  expect 0 '^kedge [0-9]' hidden "$unpacked/bin/kedge" --version
  expect 0 '"response": ' hidden "$unpacked/bin/kedge" generate --model lm --text 'bb' --max-new-tokens 3 --threads 1
  mkdir -p begun/data.txt  # a folder in the way of a file ends the quickstart behind its first part
  expect 1 '^ +kedge [0-9]' hidden "$unpacked/share/kedge/scripts/quickstart" --out begun --short
  expect 2 'needs a checkout' "$unpacked/share/kedge/scripts/quickstart" --rival
  rm -rf packages unpacked
fi

# A program of somebody else's, with nothing but the folder to look in
generator=()
command -v ninja >/dev/null && generator=(-G Ninja)
cp -r "$tree/share/kedge/examples/custom_reward" mine
SECONDS=0
expect 0 'Build files have been written' hidden cmake -S mine -B mine/build "${generator[@]}" -DCMAKE_PREFIX_PATH="$tree" -DCMAKE_CXX_FLAGS="-Wall -Wextra -Werror"
expect 0 '' hidden cmake --build mine/build
echo "configured and built a program over it in $SECONDS s"
for i in $(seq 8); do echo "{\"text\": \"$(printf 'b%.0s' $(seq $i)) c\"}"; done >prompts.jsonl
expect 0 '' hidden mine/build/custom_reward lm prompts.jsonl out model.encoder_seq_length=32 model.reinforce.num_rollout_samples=4 model.global_batch_size=16 \
  trainer.reinforce.max_steps=2 trainer.reinforce.unfinished=keep
[ "$(grep -c '"train_rollouts/rewards": ' out/metrics.jsonl)" = 2 ] || fail 'not the numbers of two steps'
expect 0 '"response": ' hidden "$kedge" generate --model out/model --text 'bb' --max-new-tokens 3 --threads 1
# What the machine lacks is named as the package to install.
expect 1 'apt-get install libpcre2-dev' cmake -S mine -B lacking "${generator[@]}" -DCMAKE_PREFIX_PATH="$tree" -DKEDGE_pcre2-8_LIBRARY=

exit $((failures > 0))
