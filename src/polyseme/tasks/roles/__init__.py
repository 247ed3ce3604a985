"""Semantic roles: for each predicate of a sentence, who did what to whom, when and where."""
