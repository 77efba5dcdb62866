"""Which submodules a plain `import torch` (or of another library) makes available as attributes."""

from __future__ import annotations

import sys

# Libraries whose names are imported as `from module import name` where the module must be imported.
FAMILY = frozenset(["torch", "torchvision", "torchaudio", "torchtext", "torchdata", "torchao"])

# Public modules that `import torch` does not import in torch 2.13, the outermost only; a test compares this
# with the torch that is installed.
TORCH_UNREACHED = frozenset(
    [
        "torch.ao.quantization.backend_config",
        "torch.ao.quantization.fx",
        "torch.ao.quantization.quantize_fx",
        "torch.backends.xeon",
        "torch.backends.xnnpack",
        "torch.contrib",
        "torch.cuda.comm",
        "torch.distributed.algorithms.ddp_comm_hooks",
        "torch.distributed.algorithms.model_averaging",
        "torch.distributed.argparse_util",
        "torch.distributed.checkpoint",
        "torch.distributed.collective_utils",
        "torch.distributed.debug",
        "torch.distributed.elastic",
        "torch.distributed.flight_recorder",
        "torch.distributed.fsdp",
        "torch.distributed.launch",
        "torch.distributed.launcher",
        "torch.distributed.nn",
        "torch.distributed.optim",
        "torch.distributed.pipelining",
        "torch.distributed.rpc.rref_proxy",
        "torch.distributed.run",
        "torch.distributed.tensor",
        "torch.export.custom_obj",
        "torch.export.experimental",
        "torch.export.passes",
        "torch.export.pt2_archive",
        "torch.fx.annotate",
        "torch.fx.experimental.accelerator_partitioner",
        "torch.fx.experimental.debug",
        "torch.fx.experimental.dynamic_spec",
        "torch.fx.experimental.graph_gradual_typechecker",
        "torch.fx.experimental.merge_matmul",
        "torch.fx.experimental.meta_tracer",
        "torch.fx.experimental.migrate_gradual_types",
        "torch.fx.experimental.normalize",
        "torch.fx.experimental.optimization",
        "torch.fx.experimental.partitioner_utils",
        "torch.fx.experimental.recording",
        "torch.fx.experimental.refinement_types",
        "torch.fx.experimental.rewriter",
        "torch.fx.experimental.schema_type_annotation",
        "torch.fx.experimental.symbolic_shapes",
        "torch.fx.experimental.unification.match",
        "torch.fx.experimental.unify_refinements",
        "torch.fx.experimental.validator",
        "torch.fx.passes.annotate_getitem_nodes",
        "torch.fx.passes.backends",
        "torch.fx.passes.dialect",
        "torch.fx.passes.fake_tensor_prop",
        "torch.fx.passes.graph_transform_observer",
        "torch.fx.passes.infra.partitioner",
        "torch.fx.passes.pass_manager",
        "torch.fx.passes.regional_inductor_invoke_subgraph",
        "torch.fx.passes.utils.fuser_utils",
        "torch.fx.passes.utils.matcher_with_name_node_map_utils",
        "torch.fx.passes.utils.source_matcher_utils",
        "torch.jit.generate_bytecode",
        "torch.jit.mobile",
        "torch.jit.quantized",
        "torch.jit.supported_ops",
        "torch.jit.unsupported_tensor_ops",
        "torch.multiprocessing.pool",
        "torch.multiprocessing.queue",
        "torch.nativert",
        "torch.nn.attention.bias",
        "torch.nn.attention.experimental",
        "torch.nn.attention.flex_attention",
        "torch.nn.attention.varlen",
        "torch.nn.backends",
        "torch.nn.cpp",
        "torch.nn.modules.linear_cross_entropy",
        "torch.nn.quantizable.modules.activation",
        "torch.nn.quantizable.modules.rnn",
        "torch.nn.utils.prune",
        "torch.numa",
        "torch.profiler.python_tracer",
        "torch.quantization.fx",
        "torch.quantization.quantize_fx",
        "torch.quantization.utils",
        "torch.utils.benchmark",
        "torch.utils.bundled_inputs",
        "torch.utils.cpp_extension",
        "torch.utils.data.backward_compatibility",
        "torch.utils.data.datapipes.gen_pyi",
        "torch.utils.data.datapipes.utils.snapshot",
        "torch.utils.debug_log",
        "torch.utils.file_baton",
        "torch.utils.flop_counter",
        "torch.utils.hipify",
        "torch.utils.jit",
        "torch.utils.mkldnn",
        "torch.utils.mobile_optimizer",
        "torch.utils.model_dump",
        "torch.utils.model_zoo",
        "torch.utils.module_tracker",
        "torch.utils.serialization",
        "torch.utils.show_pickle",
        "torch.utils.tensorboard",
        "torch.utils.viz",
    ]
)

# Imported by torch 2.13 only because another of its modules happens to use it; torch 1.x did not.
TORCH_BY_ACCIDENT = frozenset(["torch.utils.checkpoint"])

# What the `__init__` of other packages imports in every release that matters; anything else is imported.
_REACHED = {
    "torchvision": frozenset(
        [
            "torchvision.datasets",
            "torchvision.io",
            "torchvision.models",
            "torchvision.models.detection",
            "torchvision.models.quantization",
            "torchvision.models.segmentation",
            "torchvision.models.video",
            "torchvision.ops",
            "torchvision.transforms",
            "torchvision.transforms.functional",
            "torchvision.utils",
        ]
    ),
    "torchaudio": frozenset(
        [
            "torchaudio.compliance",
            "torchaudio.datasets",
            "torchaudio.functional",
            "torchaudio.models",
            "torchaudio.pipelines",
            "torchaudio.transforms",
        ]
    ),
    "torchtext": frozenset(
        [
            "torchtext.data",
            "torchtext.datasets",
            "torchtext.models",
            "torchtext.nn",
            "torchtext.transforms",
            "torchtext.utils",
            "torchtext.vocab",
        ]
    ),
    "pytorch_lightning": frozenset(
        f"pytorch_lightning.{name}"
        for name in ("callbacks", "core", "loggers", "strategies", "trainer", "utilities")
    ),
    "lightning": frozenset(
        [
            "lightning.fabric",
            "lightning.pytorch",
            *(
                f"lightning.pytorch.{name}"
                for name in ("callbacks", "core", "loggers", "strategies", "trainer", "utilities")
            ),
        ]
    ),
    "torchao": frozenset(["torchao.dtypes", "torchao.quantization"]),
    "numpy": frozenset(["numpy.fft", "numpy.linalg", "numpy.random"]),
    "os": frozenset(["os.path"]),
}


def module_of(qualified: str) -> str:
    """The module that holds a name, by the convention that only classes have capitals.

    `torch.utils.benchmark.Timer.timeit` -> `torch.utils.benchmark`; a name without a dot is its own module.
    """
    parts = qualified.split(".")
    for number, part in enumerate(parts[1:], 1):
        if part.lstrip("_")[:1].isupper():
            return ".".join(parts[:number])
    return ".".join(parts[:-1]) or qualified


def needed_module(qualified: str) -> str | None:
    """The module that must be imported for a dotted name, None where the plain root import is enough.

    `torch.linalg.qr` -> None, `torch.distributed.tensor.DTensor` -> `torch.distributed.tensor`.
    """
    root = qualified.partition(".")[0]
    module = module_of(qualified)
    if root == "torch":
        head = qualified
        while "." in head:
            if head in TORCH_UNREACHED or head in TORCH_BY_ACCIDENT:
                return max(head, module, key=len)
            head = head.rpartition(".")[0]
        return None
    reached = _REACHED.get(root, frozenset())
    return None if module == root or module in reached or qualified in reached else module


def is_standard(module: str) -> bool:
    """Whether a module belongs to Python's standard library."""
    return module.partition(".")[0] in sys.stdlib_module_names
