"""Train models: the loop for all of them, pretraining of a biLM, its report."""
