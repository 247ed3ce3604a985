"""VECTORS -> ANSWERS: task models on ELMo, with an honest comparison to the same model without it.

settings   what a person may set                     tables, columns   files to rows and to tagged sentences
examples   rows to examples: tokens and what is right     stored       vectors of frozen models, computed once
inputs     ELMo, words, static vectors, characters -> one vector a token; static: the file of vectors
encoder    a biLSTM over them                        crf, tags         tag sequences: the best, the legal
classification, tagging, pairs, relations            one task, one file
scores     accuracy, F1, span F1, correlations       work              a task for the one training loop
model      a trained task: predict, evaluate, save   runs, report      seeds, sizes, with and without ELMo
folder     where a training writes, and whether it may go on       probes   what each layer knows
"""
