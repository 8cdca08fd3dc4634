"""Benchmarks of the engine beside its peers: `python -m benchmarks.engine`."""
