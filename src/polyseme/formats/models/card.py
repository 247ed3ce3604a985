"""The model card: what a model is, for people who find the folder.

formats.models.pretrained  ->  formats.models.card  ->  README.md in the model's folder
"""

from __future__ import annotations

import json

from polyseme.config import ModelSettings
from polyseme.formats.models.pretrained import Pretrained


def render_card(model: Pretrained, name: str, precision: str = "fp32", *, tables: bool = False) -> str:
    """Markdown for the README.md of a model folder.

    Args:
        model: The model.
        name: The name of the folder.
        precision: The precision of its large weights.
        tables: Whether its tables have that precision, too.

    """
    parts = "tables, stacks and highways" if tables else "stacks and highways"
    facts = describe(model) | ({} if precision == "fp32" else {"precision": f"{precision} in {parts}"})
    lines = [
        f"# {name}",
        "",
        "A bidirectional language model (ELMo, Peters et al. 2018) for Polyseme.",
        "",
        "| | |",
        "|---|---|",
        *(f"| {_escape_cell(key)} | {_escape_cell(value)} |" for key, value in facts.items()),
        "",
        "```python",
        "import polyseme",
        "",
        f"model = polyseme.load({json.dumps(name, ensure_ascii=False)})",
        'vectors = model.embed("one sentence")  # (tokens, values)',
        "```",
        "",
    ]
    return "\n".join(lines)


def describe(model: Pretrained) -> dict[str, str]:
    """Facts about a model by name, for the model card, `polyseme.info` and the explorer."""
    config = model.config
    parameters = sum(tensor.numel() for tensor in model.network.state_dict().values())
    count = f"{parameters / 1e6:,.1f} million" if parameters >= 1e6 else f"{parameters:,}"
    facts = {
        "tokens": _describe_tokens(config),
        "layers": f"{config.layers} (token layer and {config.recurrent.layers} of "
        f"{_describe_recurrent(config)})",
        "vector": f"{config.size} values",
        "parameters": f"{count} without the softmax",
        "segmentation": config.segment,
        "vocabulary": f"{len(model.vocab):,} words" if model.vocab else "none",
        "softmax": "yes" if model.softmax else "no",
    }
    return facts | {f"origin: {key}": value for key, value in model.origin.items()}


def _escape_cell(text: str) -> str:
    """Escape text for a cell of a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|")


def _describe_tokens(config: ModelSettings) -> str:
    parts = []
    if config.words:
        parts.append(f"word table of {config.words.dim}")
    if config.chars:
        chars = config.chars
        parts.append(
            f"char-CNN over {chars.encoding}, at most {chars.max_chars} a word, {chars.size} filters, "
            f"{chars.activation}, highways: {chars.highways}"
        )
    return " and ".join(parts) + (", projected" if config.projects_tokens else "")


def _describe_recurrent(config: ModelSettings) -> str:
    recurrent = config.recurrent
    clips = [
        f"{name} clip {value:g}"
        for name, value in (("cell", recurrent.cell_clip), ("output", recurrent.output_clip))
        if value is not None
    ]
    size = f"{recurrent.cells} cells"
    size += f" projected to {recurrent.outputs}" if recurrent.projects else ""
    residual = ["residual"] if recurrent.residual else []
    return ", ".join([f"{recurrent.cell} {size}", *clips, *residual])
