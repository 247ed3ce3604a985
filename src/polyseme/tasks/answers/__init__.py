"""Answers: the span of a text that answers a question, or that it has none."""
