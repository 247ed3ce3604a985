"""VECTORS -> PREDICTIONS: task models on ELMo, compared with the same models without it.

protocol     what a task is                        table          the tasks by name
settings     what tasks share of their settings    experiment     runs: seeds, sizes, with and without ELMo
trainable    a task for the training loop          task_model     a trained task: predict, evaluate, save
task_folder  its files                             run_folder     the folder of an experiment
examples     functions over examples of any task   labels         functions over labels
metrics      scores                                report         report.md, report.json, plots
vector_store, static_vectors                       vectors of a frozen ELMo; static vectors
data/        readers of labelled data              nn/            featurizer, encoder, CRF, pooling, dense
classification/  tagging/  pairs/  relations/  roles/  coref/  answers/  probes/
             one task each: settings, example, network, task
"""
