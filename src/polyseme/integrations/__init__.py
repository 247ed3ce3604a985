"""Other libraries, one module each, each an optional extra."""
