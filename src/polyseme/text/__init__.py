"""From raw text to tokens to ids.

    reading  ->  segment/  ->  chars, vocab, static_vectors, corpus/  ->  model

Nothing here imports torch.
"""
