"""VECTORS -> NEIGHBOURS: search every usage of every word of a corpus by its meaning in context.

space           correct the narrow cone of contextual vectors
usage_store     usages on disk: vectors, sentences, offsets; memory-mapped
usage_writer    the text of a corpus to blocks of usages
statistics      computed from the blocks: the space, lengths, the mean of each word
build           a model and a corpus to an index, in constant memory, resumable
exact           nearest usages, exactly
approximate     nearest usages by a usearch graph
index           open and search an index
similarity      cosines of words, usages and sentences; the odd one out
clusters        clusters of directions: how many, how stable
senses          the senses of a word: clusters of its usages
maps            usages in two dimensions
sense_data      files of words labelled with senses
usage_vectors   vectors of labelled usages: word, context, sentence
disambiguation  senses of usages from labelled examples
change          how words differ between two corpora
"""
