"""EVERYTHING OVER HTTP: the verbs that only read, and a page to look at words.

limits     what a request may cost, and the refusals that say so
threads    work off the event loop, counted until it is done
state      what all rooms share
batching   requests that arrive together -> one batch; long texts in a lane of their own
catalog    the model, indexes and task models that are served, and what /info says of them
schemas    what requests look like
answers    vectors and the like -> JSON, or raw numbers
studies    what takes seconds, within bounds: how words changed
verbs      one route a verb
openai     the same vectors under OpenAI's names
metrics    what is counted, for Prometheus
guard      around every request: key, limits, headers, ids, logs
logs       where the log goes
pages      the explorer, and /docs from the OpenAPI schema
app        all of these in one application
protocol   one connection, with its clocks
processes  several of them, started again where they die
running    sockets and signals
"""
