"""C kernels for CPUs: the LSTM time loop, products with packed weights, exact search; built on install."""
