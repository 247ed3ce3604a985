"""Coreference: which spans of a document mean the same person or thing."""
