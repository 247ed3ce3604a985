"""VECTORS -> NEIGHBOURS: search every usage of every word of a corpus by its meaning in context.

usage_store        usages on disk: vectors, sentences, offsets; memory-mapped
usage_table        usages as a table, for Parquet files and stores
usage_writer       the text of a corpus to blocks of usages
statistics         computed from the blocks: the space, lengths, the mean of each word
build              a model and a corpus to an index, in constant memory, resumable
index              open and search an index
selection          select and group the documents of an index
exact              nearest usages, exactly
approximate        nearest usages by a usearch graph
space              correct the narrow cone of contextual vectors
usual_cosines      what cosines are usual: of usages of one word, of random words
similarity         cosines of words, usages and sentences; the odd one out
clusters           clusters of directions: how many, how stable
contexts           the words around usages: topics, grammar, collocates
grammar            whether groups of usages are grammatical positions
corpus_text        the text of an index in its order, and passages of it
senses             the senses of a word: clusters of its usages, with evidence
timeline           a word and its senses over documents or years
concordance        usages as lines, sorted; counts over documents
collocates         the words that stand near a word, by log-likelihood
maps               usages in two dimensions
change             how words differ between two corpora
change_screening   the distance of every frequent word, and whether it is chance
change_search      the words that changed most, within a time limit
change_statistics  distances, permutation tests, intervals
sense_data         files of words labelled with senses
usage_vectors      vectors of labelled usages: word, context, sentence
disambiguation     senses of usages from labelled examples
passages           the passages of a text that a question is about
summaries          the most central sentences of a text
"""
