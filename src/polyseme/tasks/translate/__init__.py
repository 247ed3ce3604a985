"""Translation: a text in another language."""
