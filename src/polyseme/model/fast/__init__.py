"""Faster ways to the same results: packing, quantisation, threads, lookup tables, C kernels."""
