"""Pairs: two texts to a label or a number (entailment, paraphrase, answer selection, similarity)."""
