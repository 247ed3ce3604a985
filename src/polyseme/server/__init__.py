"""EVERYTHING OVER HTTP: the verbs that only read, and a page to look at words.

limits     what a request may cost, and the refusals that say so
state      what all rooms share
batching   requests that arrive together -> one batch; long texts in a lane of their own
catalog    the model, indexes and task models that are served, and what /info says of them
schemas    what requests look like
answers    vectors and the like -> JSON, or raw numbers
verbs      one route a verb
openai     the same vectors under OpenAI's names
metrics    what is counted, for Prometheus
guard      around every request: key, limits, headers, ids, logs
logs       where the log goes
pages      the explorer, and /docs from the OpenAPI schema
app        all of these in one application
running    sockets, signals, processes
"""
