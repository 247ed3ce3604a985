"""Models to files and back: one module per format."""
