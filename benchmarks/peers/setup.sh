#!/bin/sh
# Create the environment of a peer: a virtual environment of its own, never the one of Polyseme.
#
#   sh benchmarks/peers/setup.sh [FOLDER] [NAME]     FOLDER defaults to .venv-peers
#
# NAME is one of
#   peers  AllenNLP's ELMo on torch, simple_elmo and bilm-tf on TensorFlow (default)
#   flair  flair's language models
#   onnx   onnxruntime, for BERT
#   duel   transformers, stanza, spaCy and gensim, for benchmarks/duel.py
#
# PYTHON       Python 3.11, the latest that TensorFlow 2.15 supports; simple_elmo needs its graph API
# TORCH_INDEX  index of CPU-only torch builds: https://download.pytorch.org/whl/cpu
#
# Does nothing if the environment is newer than this file and the list of packages.
set -eu

here=$(dirname "$0")
venv=${1:-.venv-peers}
name=${2:-peers}
wanted=$here/../requirements-$name.txt
done=$venv/.installed

if [ -e "$done" ] && [ "$done" -nt "$wanted" ] && [ "$done" -nt "$0" ]; then
  exit 0
fi

python=${PYTHON:-python3.11}
"$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || {
  echo "The peers need Python 3.11; $python is another version. Run: make $name PEERS_PYTHON=/path/to/python3.11" >&2
  exit 2
}
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
pip="$venv/bin/python -m pip --disable-pip-version-check --quiet"

if [ -n "${TORCH_INDEX:-}" ] && grep -q '^torch' "$wanted"; then
  $pip install "torch==2.13.0" --index-url "$TORCH_INDEX"
fi
$pip install -r "$wanted"
if [ "$name" = peers ]; then
  # Without dependencies: AllenNLP requires torch < 1.13 and two dozen packages that ELMo does not use
  # (allennlp_elmo.py replaces them), bilm-tf TensorFlow 1; those of simple_elmo are in the list above.
  $pip install --no-deps "allennlp==2.10.1" "simple-elmo==0.9.2" "bilm==0.1.post5"
fi
touch "$done"
