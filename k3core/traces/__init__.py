"""Traces of requests: read from files, generated, and replayed against a prefix cache."""

from .generate import WORKLOADS, Workload, generate_trace
from .reading import Request, TraceError, read_trace
from .replay import EVICTIONS, Counts, TraceCache, finish, replay
