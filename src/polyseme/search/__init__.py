"""VECTORS -> NEIGHBOURS: every usage of every word in a corpus, by what it means there.

space      the cone that contextual vectors crowd into: measured, and taken away
blocks     usages on disk: vectors, sentences, places; memory-mapped
parts      what follows from the blocks: the space, the lengths in it, the mean of each word
filling    the text of a corpus to blocks: sentences, places, vectors
building   a model and a corpus -> an index, in constant memory, through kills
exact      the nearest of millions by one product after the other
graph      the same, approximately (usearch)
similarity   cosines of words, usages and sentences; the odd one out
index      the door: nearest words, usages in a sense, similarity, analogies
clusters   directions in groups: how many, how firmly
senses     the usages of a word in groups, with neighbours and sentences
maps       usages of words on a plane
labelled   files of words with their senses
views      what of its sentence is looked at: the word, its place, all of it
disambiguation   labelled examples -> the sense of a usage
change     how far a word moved between two corpora, and whether that is chance
"""
