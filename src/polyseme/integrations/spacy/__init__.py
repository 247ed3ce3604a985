"""spaCy: ELMo vectors of documents, embeddings for spaCy's own models, task models as components.

    documents (tokens of spaCy  ->  sentences of ELMo  ->  a row per token)
    stored_model (a model that is loaded late, and saved inside a pipeline)
    both  ->  vectors (`polyseme`), task_component (`polyseme_task`), tok2vec (`polyseme.Tok2Vec.v1`)
    tokenizer (`polyseme.Tokenizer.v1`)

spaCy finds the names in backticks by the entry points of the package. Importing these modules does not load
Elmo: that happens with the first document.
"""

from polyseme.errors import require

require("spacy", "spacy", "The spaCy integration")

from polyseme.integrations.spacy.vectors import set_hooks  # noqa: E402  # after the check for spaCy

__all__ = ["set_hooks"]
