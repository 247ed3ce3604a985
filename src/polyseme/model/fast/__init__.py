"""The same results as the plain modules, faster: packing, quantisation, threads, lookup tables, C kernels."""
