"""Work behind the requests: batches, worker pools, processes."""
