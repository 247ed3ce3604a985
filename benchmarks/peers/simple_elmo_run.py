"""simple_elmo (0.9.2) on TensorFlow 2.15, from zero state, with one session.

Run by the peers' Python:
    .venv-peers/bin/python benchmarks/peers/simple_elmo_run.py OPTIONS WEIGHTS SENTENCES --time

simple_elmo is GPL-3: this program calls its public functions and contains none of its code. By default it
opens a session on every call, so it is given one: only inference is timed.
"""

import logging
import os
import tempfile
from pathlib import Path

import measure
import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # read while TensorFlow is imported


def load(options: Path, weights: Path, batch: int, threads: int) -> measure.Embed:
    """Load the model and open its session; every batch starts from zero state."""
    import tensorflow as tf
    from simple_elmo import ElmoModel
    from simple_elmo.elmo import weight_layers

    v1 = tf.compat.v1
    model = ElmoModel()
    logging.disable(logging.INFO)  # it logs every batch
    with tempfile.TemporaryDirectory() as folder:  # it opens folders with fixed file names
        (Path(folder) / "options.json").symlink_to(options.resolve())
        (Path(folder) / "model.hdf5").symlink_to(weights.resolve())
        model.load(folder, max_batch_size=batch)
    config = v1.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads)
    session = v1.Session(config=config)
    model.elmo_sentence_input = weight_layers("input", model.sentence_embeddings_op, use_layers="all")
    session.run(v1.global_variables_initializer())
    # The states are the only variables with default names: bilm/Variable, bilm/Variable_1, …
    states = [v for v in v1.global_variables() if v.op.name.rpartition("/")[2].startswith("Variable")]
    reset = v1.variables_initializer(states)

    def embed(sentences: list[measure.Sentence]) -> list[np.ndarray]:
        session.run(reset)
        # (B, L, T, H) in double precision, as simple_elmo returns them.
        layers = model.get_elmo_vectors(sentences, warmup=False, layers="all", session=session)
        return [layers[i, :, : len(sentence)] for i, sentence in enumerate(sentences)]

    return embed


if __name__ == "__main__":
    measure.main(__doc__, load)
