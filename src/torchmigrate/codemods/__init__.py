"""Whole migrations, which no pattern can say: a module each, loaded when a file has something for it."""

# Those that may find something in a file that has no hit of their rules; their `SCREEN` tells in which.
SCREENED = frozenset(
    [
        "attention",
        "compile_step",
        "graph_breaks",
        "launch_arguments",
        "pretrained_models",
        "require_grad_typo",
        "scalar_item",
        "tensor_operators",
        "torch_compile",
        "torch_function",
        "volatile",
        "zero_grad_none",
    ]
)
