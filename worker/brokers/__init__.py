"""Brokers that the program itself can start."""
