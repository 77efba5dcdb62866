"""torch.compile: what could be compiled, what breaks the graph, in which order."""
