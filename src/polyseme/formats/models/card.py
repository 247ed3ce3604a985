"""The model card: what a model is, for people who find the folder.

formats.models.pretrained  ->  formats.models.card  ->  README.md in the model's folder
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from polyseme.config import ModelSettings
from polyseme.formats.models.pretrained import Pretrained

LANGUAGES = {"en": ("en",), "zh": ("zh",), "zh-char": ("zh",), "auto": ("en", "zh")}  # by segmentation
TAGS = ("elmo", "bilm", "contextual-word-vectors")
PERPLEXITY = re.compile(r"mean ([\d.]+)")  # in the origin of a model that was pretrained here


@dataclass(frozen=True)
class CardMetadata:
    """What the front matter of a card says that the model does not know.

    Attributes:
        name: What loads the model; None for the name of its folder.
        license: An identifier of the Hugging Face Hub, such as "apache-2.0".
        language: Codes such as "en"; None for those of the model's segmentation.
        tags: More tags than the usual ones.

    """

    name: str | None = None
    license: str | None = None
    language: str | Sequence[str] | None = None
    tags: Sequence[str] = ()


NO_METADATA = CardMetadata()


def render_front_matter(model: Pretrained, name: str, metadata: CardMetadata = NO_METADATA) -> list[str]:
    """The lines of YAML at the start of a card, which the Hugging Face Hub reads.

    Args:
        model: The model.
        name: Its name.
        metadata: What the model does not know.

    """
    language = LANGUAGES.get(model.config.segment, ()) if metadata.language is None else metadata.language
    values: dict[str, object] = {"library_name": "polyseme", "pipeline_tag": "feature-extraction"}
    if metadata.license is not None:
        values["license"] = metadata.license
    if language:
        values["language"] = [language] if isinstance(language, str) else list(language)
    values["tags"] = list(dict.fromkeys([*TAGS, *metadata.tags]))
    perplexity = PERPLEXITY.search(model.origin.get("held-out perplexity", ""))
    if perplexity:
        values["metrics"] = ["perplexity"]
        result = {
            "task": {"type": "text-generation", "name": "Language modelling, both directions"},
            "dataset": {"type": "held-out", "name": "Held-out part of the training text"},
            "metrics": [{"type": "perplexity", "value": float(perplexity[1].rstrip("."))}],
        }
        values["model-index"] = [{"name": name, "results": [result]}]
    # JSON is YAML, and quotes strings that YAML would take for something else.
    return [
        "---",
        *(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()),
        "---",
    ]


def drop_front_matter(card: str) -> str:
    """The Markdown of a card without the YAML before it."""
    return re.sub(r"\A---\n.*?^---\n\s*", "", card, flags=re.DOTALL | re.MULTILINE)


def render_card(
    model: Pretrained,
    name: str,
    precision: str = "fp32",
    *,
    tables: bool = False,
    metadata: CardMetadata = NO_METADATA,
) -> str:
    """Markdown for the README.md of a model folder, after YAML for the Hugging Face Hub.

    Args:
        model: The model.
        name: The name of the folder.
        precision: The precision of its large weights.
        tables: Whether its tables have that precision, too.
        metadata: What the front matter says that the model does not know.

    """
    name = metadata.name or name
    parts = "tables, stacks and highways" if tables else "stacks and highways"
    facts = describe(model) | ({} if precision == "fp32" else {"precision": f"{precision} in {parts}"})
    lines = [
        *render_front_matter(model, name, metadata),
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
