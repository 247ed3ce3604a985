"""Text to tokens to ids: the floor between raw files and the model.

    reading  ->  segment  ->  chars, vocab, vectors  ->  model

Nothing in here imports torch.
"""
