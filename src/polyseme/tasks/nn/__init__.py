"""Layers that task networks share."""
