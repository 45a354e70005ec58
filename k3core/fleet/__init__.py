"""A fleet of clusters: hashing, affinity, admission, latency, queueing theory and an event simulation."""
