"""Measurements beside peers; run one as `python -m benchmarks.<name>` from the repository root."""
