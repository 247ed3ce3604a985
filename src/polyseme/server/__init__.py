"""EVERYTHING OVER HTTP: the verbs that only read, and the explorer.

serve          the verb: checks the extra, starts the server
run            sockets, signals, processes
app            the ASGI application
state          loaded models, threads, metrics
catalog        one model with its indexes and task models
served_models  all models of a server, and which one a request means
verb_routes    the route of a verb
verbs          one route per verb
evaluation     the routes of evaluate and disambiguate
concordances   the routes that read a corpus word by word
openai         OpenAI's embeddings API
tei            embeddings for clients of text-embeddings-inference
result_cache   senses, changes and persons, kept from request to request
change_memo    what is known of the changes between two indexes
word_checks    unknown words, with similar spellings
usage_layers   all layers of usages, for the explorer
suggestions    example words and sentences for the explorer
workspace/     texts of users, trained and indexed by the server
http/          requests, responses, limits, middleware, pages, log, metrics
jobs/          batching, worker pools, processes
explorer/      the page: HTML, CSS and JavaScript
"""
