"""Abstractive summaries: a short text, such as a headline, from a longer one."""
