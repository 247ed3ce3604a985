"""Files of any size to a memory-mapped stream of tokens."""
