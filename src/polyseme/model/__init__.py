"""Ids to layers to vectors. Knows no files and no settings: modules take plain numbers."""
