"""Texts from texts: the network, the units and the search that translations and summaries share."""
