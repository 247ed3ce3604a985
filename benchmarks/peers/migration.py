"""Run the calls in the left columns of docs/coming-from.md in the libraries they belong to.

Run by the peers' Python:
    .venv-peers/bin/python benchmarks/peers/migration.py LIBRARY FOLDER OUT.npz

LIBRARY is allennlp, bilm-tf or simple_elmo. FOLDER holds options.json, model.hdf5, vocab.txt and text.txt
(tokenised, one sentence per line). OUT.npz gets one array per call; tests/test_migration.py compares them
with the calls in the right columns. Everything is called through the public names that the page shows.
"""

import argparse
import os
import sys
from pathlib import Path

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # read while TensorFlow is imported

Arrays = dict[str, np.ndarray]
Sentences = list[list[str]]


def run_allennlp(folder: Path, sentences: Sentences) -> Arrays:
    """The calls of the section AllenNLP."""
    import torch
    from allennlp_elmo import supplied_imports

    with supplied_imports():
        from allennlp.modules.elmo import Elmo, batch_to_ids
    files = (str(folder / "options.json"), str(folder / "model.hdf5"))
    ids = batch_to_ids(sentences)
    arrays: Arrays = {"ids": ids.numpy()}
    settings = {
        "mixes": {"num_output_representations": 2},
        "layer norm": {"num_output_representations": 1, "do_layer_norm": True},
        "boundaries": {"num_output_representations": 1, "keep_sentence_boundaries": True},
        "weights": {"num_output_representations": 1, "scalar_mix_parameters": [0.2, -0.3, 1.0]},
    }
    for name, chosen in settings.items():
        elmo = Elmo(*files, **chosen).eval()
        with torch.inference_mode():
            for batch in ("first", "second"):  # the second begins in the state that the first left
                out = elmo(ids)
                arrays[f"{name}, {batch}"] = out["elmo_representations"][-1].numpy()
                arrays[f"{name}, mask"] = out["mask"].numpy()
        arrays[f"{name}, size"] = np.array(elmo.get_output_dim())
    return arrays


def run_bilm_tf(folder: Path, sentences: Sentences) -> Arrays:
    """The calls of the section bilm-tf."""
    import h5py
    import tensorflow

    v1 = tensorflow.compat.v1
    v1.disable_v2_behavior()
    sys.modules["tensorflow"] = v1  # bilm-tf was written for TensorFlow 1
    from bilm import (
        Batcher,
        BidirectionalLanguageModel,
        dump_bilm_embeddings,
        dump_token_embeddings,
        weight_layers,
    )

    options, weights, vocabulary = (
        str(folder / name) for name in ("options.json", "model.hdf5", "vocab.txt")
    )
    batcher = Batcher(vocabulary, 50)
    arrays: Arrays = {}
    with v1.Graph().as_default(), v1.Session() as session:
        placeholder = v1.placeholder("int32", shape=(None, None, 50))
        ops = BidirectionalLanguageModel(options, weights)(placeholder)
        mixed = {
            "mix": weight_layers("input", ops, l2_coef=0.0),
            "top": weight_layers("top", ops, l2_coef=0.0, use_top_only=True),
        }
        session.run(v1.global_variables_initializer())
        feed = {placeholder: batcher.batch_sentences(sentences)}
        arrays["layers, first"] = session.run(ops["lm_embeddings"], feed)
        arrays["layers, second"] = session.run(ops["lm_embeddings"], feed)
        session.run(v1.global_variables_initializer())
        arrays["mix"] = session.run(mixed["mix"]["weighted_op"], feed)
        session.run(v1.global_variables_initializer())
        arrays["top"] = session.run(mixed["top"]["weighted_op"], feed)
    out = str(folder / "dump.hdf5")
    with v1.Graph().as_default():
        dump_bilm_embeddings(vocabulary, str(folder / "text.txt"), options, weights, out)
    with h5py.File(out) as file:
        arrays |= {f"dump {number}": file[number][...] for number in file}
    out = str(folder / "tokens.hdf5")
    with v1.Graph().as_default():
        dump_token_embeddings(vocabulary, options, weights, out)
    with h5py.File(out) as file:
        arrays["tokens"] = file["embedding"][...]
    return arrays


def run_simple_elmo(folder: Path, sentences: Sentences) -> Arrays:
    """The calls of the section simple_elmo and NLPL; `load` reads the folder as it reads a zip."""
    import tensorflow
    from simple_elmo import ElmoModel

    arrays: Arrays = {}
    for layers in ("average", "top", "all"):
        with tensorflow.Graph().as_default():
            model = ElmoModel()
            model.load(str(folder), max_batch_size=32)
            arrays[layers] = model.get_elmo_vectors(sentences, layers=layers)
    with tensorflow.Graph().as_default():
        model = ElmoModel()
        model.load(str(folder), max_batch_size=32)
        arrays["sentence"] = model.get_elmo_vector_average([sentences[0]])
    return arrays


LIBRARIES = {"allennlp": run_allennlp, "bilm-tf": run_bilm_tf, "simple_elmo": run_simple_elmo}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("library", choices=LIBRARIES)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    chosen = parser.parse_args()
    text = (chosen.folder / "text.txt").read_text(encoding="utf-8")
    np.savez(
        chosen.out, **LIBRARIES[chosen.library](chosen.folder, [line.split() for line in text.splitlines()])
    )
