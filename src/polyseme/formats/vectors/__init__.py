"""Vectors to files and back."""
