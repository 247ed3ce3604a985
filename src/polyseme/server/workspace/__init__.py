"""TEXTS OF THE USER, TRAINED AND INDEXED BY THE SERVER: `polyseme.serve(…, workspace=DIR)`.

names            names of corpora and files, which never leave their folder
corpus_folder    one corpus on disk: text, settings, state
job_progress     how far a job is: a file that the job writes and the server reads
failures         why a job failed, in English and as a code
job              what a child process does with a corpus: pretrain, then index
supervisor       starts, pauses and ends jobs, one at a time; remembers all of it on disk
same_origin      refuses requests of other sites' pages
schemas          requests and responses
routes           the routes of /workspace
corpus_apps      the routes of a server for each finished corpus, below /corpora/NAME
"""
