"""Text and a model to a better model."""
