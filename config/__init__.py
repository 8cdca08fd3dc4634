"""Settings, logging and the errors a person reads: imported by the worker, importing nothing."""
