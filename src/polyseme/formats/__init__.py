"""Weights to files and back. The only place that knows foreign names."""
