"""How fast a replay is, beside what people would write themselves."""
