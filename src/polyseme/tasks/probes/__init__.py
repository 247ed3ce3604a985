"""Probes: linear classifiers of tags over single layers; they use the tagging task."""
