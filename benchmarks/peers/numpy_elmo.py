"""A plain numpy ELMo, written from docs/formats.md, as an independent reference for all programs.

Reads options.json and weights.hdf5, and embeds one sentence at a time in double precision, from zero state:
one array (L, tokens, H) per sentence. C characters, F filters, D cells, P outputs.
"""

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np

BEGIN_SENTENCE, END_SENTENCE, BEGIN_WORD, END_WORD, PADDING = range(256, 261)


class NumpyElmo:
    """A bilm-tf model as plain arrays."""

    def __init__(self, options: Path, weights: Path) -> None:
        self.options: dict[str, Any] = json.loads(options.read_text(encoding="utf-8"))
        self.weights: dict[str, np.ndarray] = {}
        with h5py.File(weights) as file:
            file.visititems(self._add_weight)

    def _add_weight(self, name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            self.weights[name] = item[...].astype(np.float64)

    def __call__(self, sentence: list[str]) -> np.ndarray:
        """Embed one sentence: (L, tokens, H)."""
        inside = [list(word.encode()) for word in sentence]
        tokens = np.stack([self._token(bytes_) for bytes_ in [[BEGIN_SENTENCE], *inside, [END_SENTENCE]]])
        forward = self._stack(tokens, 0)
        backward = [layer[::-1] for layer in self._stack(tokens[::-1], 1)]
        both = [
            np.concatenate(pair, axis=1) for pair in zip([tokens, *forward], [tokens, *backward], strict=True)
        ]
        return np.stack(both)[:, 1:-1]

    def _token(self, bytes_: list[int]) -> np.ndarray:
        """Char-CNN, highways and projection of one token: (P,)."""
        cnn = self.options["char_cnn"]
        width = cnn["max_characters_per_token"]
        ids = [BEGIN_WORD, *bytes_[: width - 2], END_WORD]
        chars = self.weights["char_embed"][ids + [PADDING] * (width - len(ids))]  # (C, char dim)
        pooled = []
        for i, (reach, _) in enumerate(cnn["filters"]):
            windows = np.stack([chars[start : start + reach].ravel() for start in range(width - reach + 1)])
            filters = self.weights[f"CNN/W_cnn_{i}"][0].reshape(windows.shape[1], -1)
            pooled.append((windows @ filters).max(axis=0) + self.weights[f"CNN/b_cnn_{i}"])
        x = np.concatenate(pooled)  # (F,)
        x = np.tanh(x) if cnn["activation"] == "tanh" else np.maximum(x, 0)
        for k in range(cnn.get("n_highway", 0)):
            gate = _sigmoid(self._affine(x, f"CNN_high_{k}", "carry"))
            x = gate * np.maximum(self._affine(x, f"CNN_high_{k}", "transform"), 0) + (1 - gate) * x
        return self._affine(x, "CNN_proj", "proj") if "CNN_proj/W_proj" in self.weights else x

    def _affine(self, x: np.ndarray, group: str, name: str) -> np.ndarray:
        return x @ self.weights[f"{group}/W_{name}"] + self.weights[f"{group}/b_{name}"]

    def _stack(self, inputs: np.ndarray, direction: int) -> list[np.ndarray]:
        """Run all layers of one direction: (T, P) to L - 1 arrays (T, P)."""
        lstm = self.options["lstm"]
        layers: list[np.ndarray] = []
        for layer in range(lstm.get("n_layers", 1)):
            names = (f"MultiRNNCell/Cell{layer}/LSTMCell", "LSTMCell")
            name = next(n for n in (f"RNN_{direction}/RNN/{n}" for n in names) if f"{n}/W_0" in self.weights)
            outputs = self._layer(inputs, name)
            inputs = outputs + inputs if layer and lstm.get("use_skip_connections") else outputs
            layers.append(inputs)
        return layers

    def _layer(self, inputs: np.ndarray, name: str) -> np.ndarray:
        lstm = self.options["lstm"]
        hidden, cell = np.zeros(lstm["projection_dim"]), np.zeros(lstm["dim"])
        outputs = []
        for x in inputs:
            gates = np.concatenate([x, hidden]) @ self.weights[f"{name}/W_0"] + self.weights[f"{name}/B"]
            i, j, f, o = np.split(gates, 4)
            cell = _clip(_sigmoid(f + 1) * cell + _sigmoid(i) * np.tanh(j), lstm.get("cell_clip"))
            hidden = _sigmoid(o) * np.tanh(cell)
            if f"{name}/W_P_0" in self.weights:
                hidden = _clip(hidden @ self.weights[f"{name}/W_P_0"], lstm.get("proj_clip"))
            outputs.append(hidden)
        return np.stack(outputs)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _clip(x: np.ndarray, bound: float | None) -> np.ndarray:
    return np.clip(x, -bound, bound) if bound else x
