"""What a name may hold: tensors, modules and other objects, and what operators make of them."""
