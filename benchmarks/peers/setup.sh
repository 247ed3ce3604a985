#!/bin/sh
# Makes the environment of the peers: AllenNLP's ELMo on torch, simple_elmo on TensorFlow, in one place.
#
#   sh benchmarks/peers/setup.sh [FOLDER]        FOLDER is .venv-peers unless told
#
# PYTHON       a Python 3.11; TensorFlow 2.15, the last with the graph API that simple_elmo uses, has no later one
# TORCH_INDEX  where to find a CPU-only torch: https://download.pytorch.org/whl/cpu
#
# Running it again costs nothing until this file or the list of packages changes.
set -eu

here=$(dirname "$0")
venv=${1:-.venv-peers}
wanted=$here/../requirements-peers.txt
done=$venv/.installed

if [ -e "$done" ] && [ "$done" -nt "$wanted" ] && [ "$done" -nt "$0" ]; then
  exit 0
fi

python=${PYTHON:-python3.11}
"$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || {
  echo "The peers need Python 3.11, and $python is not that. Say: make peers PEERS_PYTHON=/path/to/python3.11" >&2
  exit 2
}
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
pip="$venv/bin/python -m pip --disable-pip-version-check --quiet"

if [ -n "${TORCH_INDEX:-}" ]; then
  $pip install "torch==2.13.0" --index-url "$TORCH_INDEX"
fi
$pip install -r "$wanted"
# Both without what they ask for: AllenNLP wants torch < 1.13 and two dozen packages that ELMo never calls, and
# allennlp_elmo.py says what takes their place; what simple_elmo needs is in the list above.
$pip install --no-deps "allennlp==2.10.1" "simple-elmo==0.9.2"
touch "$done"
