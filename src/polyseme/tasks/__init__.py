"""VECTORS -> PREDICTIONS: task models on ELMo, compared with the same models without it.

protocol         what a task is
table            the tasks by name
settings         settings that tasks share
examples         functions over examples of any task
labels           functions over labels
predictions      how a prediction shows itself
trainable        a task for the training loop
experiment       runs: seeds, sizes, with and without ELMo
run_folder       the folder of an experiment
task_model       a trained task: predict, evaluate, save
task_folder      the files of a trained task
metrics          scores
significance     how sure a difference between runs is
tfidf            the baseline: TF-IDF with logistic regression
report           report.md, report.json, plots
vector_store     vectors of a frozen ELMo, computed once
static_vectors   static vectors of a task
data/            readers of labelled data
nn/              featurizer, encoder, CRF, pooling, dense layers
seq2seq/         what translation and summaries share: network, units, beam search
answers/         one task each: settings, example, network, task
classification/
coref/
pairs/
probes/
relations/
roles/
summarise/
tagging/
translate/
"""
