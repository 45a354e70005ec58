"""Measurements, one module each: `python -m benchmarks [name ...]`."""
