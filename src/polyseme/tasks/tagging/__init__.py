"""Tagging: a tag for each token (names, parts of speech, chunks) with a biLSTM-CRF."""
