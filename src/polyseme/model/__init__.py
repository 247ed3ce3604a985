"""Ids to layers to vectors. Knows no files and no config: plain numbers come in."""
