"""Exact ROC readings over changing multisets of scored events; no Kafka, no clock, no I/O."""
