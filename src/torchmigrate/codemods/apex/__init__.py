"""apex.amp and its relatives become torch.amp."""
