"""Weights to files and back. The only package that knows foreign names."""
