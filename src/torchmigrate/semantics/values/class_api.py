"""Which classes of torch derive from which, and what calling a layer gives.

Made by tools/class_api.py from torch; do not edit.
"""

# base: the classes that derive from it, unless `objects.usual_base` differs
DERIVED = """
torch.amp.GradScaler: torch.cpu.amp.GradScaler torch.cuda.amp.GradScaler
torch.ao.quantization.UniformQuantizationObserverBase: torch.ao.quantization.HistogramObserver
  torch.ao.quantization.MinMaxObserver torch.ao.quantization.PerChannelMinMaxObserver
  torch.quantization.HistogramObserver torch.quantization.MinMaxObserver
  torch.quantization.PerChannelMinMaxObserver
torch.autograd.Function: torch.autograd.NestedIOFunction
torch.distributions.ExponentialFamily: torch.distributions.Bernoulli torch.distributions.Beta
  torch.distributions.ContinuousBernoulli torch.distributions.Dirichlet torch.distributions.Exponential
  torch.distributions.Gamma torch.distributions.Normal torch.distributions.Poisson
  torch.distributions.Wishart
torch.distributions.Gamma: torch.distributions.Chi2
torch.distributions.OneHotCategorical: torch.distributions.OneHotCategoricalStraightThrough
torch.distributions.TransformedDistribution: torch.distributions.Gumbel torch.distributions.HalfCauchy
  torch.distributions.HalfNormal torch.distributions.InverseGamma torch.distributions.Kumaraswamy
  torch.distributions.LogNormal torch.distributions.LogisticNormal torch.distributions.Pareto
  torch.distributions.RelaxedBernoulli torch.distributions.RelaxedOneHotCategorical
  torch.distributions.Weibull
torch.jit.ScriptModule: torch.jit.RecursiveScriptModule torch.jit.TracedModule
torch.jit.TracedModule: torch.jit.TopLevelTracedModule
torch.nn.ConstantPad1d: torch.nn.ZeroPad1d
torch.nn.ConstantPad2d: torch.nn.ZeroPad2d
torch.nn.ConstantPad3d: torch.nn.ZeroPad3d
torch.nn.Conv1d: torch.ao.nn.intrinsic.qat.ConvBn1d torch.ao.nn.qat.Conv1d torch.nn.LazyConv1d
  torch.nn.intrinsic.qat.ConvBn1d torch.nn.qat.Conv1d
torch.nn.Conv2d: torch.ao.nn.intrinsic.qat.ConvBn2d torch.ao.nn.qat.Conv2d torch.nn.LazyConv2d
  torch.nn.intrinsic.qat.ConvBn2d torch.nn.qat.Conv2d
torch.nn.Conv3d: torch.ao.nn.intrinsic.qat.ConvBn3d torch.ao.nn.qat.Conv3d torch.nn.LazyConv3d
  torch.nn.intrinsic.qat.ConvBn3d torch.nn.qat.Conv3d
torch.nn.ConvTranspose1d: torch.nn.LazyConvTranspose1d
torch.nn.ConvTranspose2d: torch.nn.LazyConvTranspose2d
torch.nn.ConvTranspose3d: torch.nn.LazyConvTranspose3d
torch.nn.Dropout: torch.ao.nn.quantized.Dropout torch.nn.quantized.Dropout
torch.nn.ELU: torch.ao.nn.quantized.ELU torch.nn.quantized.ELU
torch.nn.Embedding: torch.ao.nn.qat.Embedding torch.nn.qat.Embedding
torch.nn.EmbeddingBag: torch.ao.nn.qat.EmbeddingBag torch.nn.qat.EmbeddingBag
torch.nn.GroupNorm: torch.ao.nn.quantized.GroupNorm torch.nn.quantized.GroupNorm
torch.nn.Hardswish: torch.ao.nn.quantized.Hardswish torch.nn.quantized.Hardswish
torch.nn.Hardtanh: torch.nn.ReLU6
torch.nn.InstanceNorm1d: torch.ao.nn.quantized.InstanceNorm1d torch.nn.quantized.InstanceNorm1d
torch.nn.InstanceNorm2d: torch.ao.nn.quantized.InstanceNorm2d torch.nn.quantized.InstanceNorm2d
torch.nn.InstanceNorm3d: torch.ao.nn.quantized.InstanceNorm3d torch.nn.quantized.InstanceNorm3d
torch.nn.LayerNorm: torch.ao.nn.quantized.LayerNorm torch.nn.quantized.LayerNorm
torch.nn.LeakyReLU: torch.ao.nn.quantized.LeakyReLU torch.nn.quantized.LeakyReLU
torch.nn.Linear: torch.ao.nn.intrinsic.qat.LinearBn1d torch.ao.nn.qat.Linear torch.nn.LazyLinear
  torch.nn.intrinsic.qat.LinearBn1d torch.nn.qat.Linear
torch.nn.Module: torch.ao.quantization.AffineQuantizedObserverBase torch.ao.quantization.DeQuantStub
  torch.ao.quantization.FakeQuantizeBase torch.ao.quantization.ObserverBase
  torch.ao.quantization.QuantStub torch.ao.quantization.QuantWrapper
  torch.distributed.fsdp.FullyShardedDataParallel torch.distributed.pipelining.Pipe torch.fx.GraphModule
  torch.jit.ONNXTracedModule torch.jit.ScriptModule torch.nn.utils.parametrize.ModuleDict
  torch.nn.utils.parametrize.ModuleList torch.optim.swa_utils.AveragedModel torch.quantization.DeQuantStub
  torch.quantization.FakeQuantizeBase torch.quantization.ObserverBase torch.quantization.QuantStub
  torch.quantization.QuantWrapper
torch.nn.ModuleList: torch.nn.utils.parametrize.ParametrizationList
torch.nn.MultiheadAttention: torch.ao.nn.quantized.MultiheadAttention
  torch.nn.quantized.MultiheadAttention
torch.nn.NLLLoss: torch.nn.NLLLoss2d
torch.nn.RNNBase: torch.nn.GRU torch.nn.LSTM torch.nn.RNN
torch.nn.RNNCellBase: torch.nn.GRUCell torch.nn.LSTMCell torch.nn.RNNCell
torch.nn.ReLU: torch.ao.nn.quantized.ReLU6 torch.nn.quantized.ReLU6
torch.nn.Sequential: torch.ao.nn.intrinsic.BNReLU2d torch.ao.nn.intrinsic.BNReLU3d
  torch.ao.nn.intrinsic.ConvAdd2d torch.ao.nn.intrinsic.ConvAddReLU2d torch.ao.nn.intrinsic.ConvBn1d
  torch.ao.nn.intrinsic.ConvBn2d torch.ao.nn.intrinsic.ConvBn3d torch.ao.nn.intrinsic.ConvBnReLU1d
  torch.ao.nn.intrinsic.ConvBnReLU2d torch.ao.nn.intrinsic.ConvBnReLU3d torch.ao.nn.intrinsic.ConvReLU1d
  torch.ao.nn.intrinsic.ConvReLU2d torch.ao.nn.intrinsic.ConvReLU3d torch.ao.nn.intrinsic.LinearBn1d
  torch.ao.nn.intrinsic.LinearLeakyReLU torch.ao.nn.intrinsic.LinearReLU torch.ao.nn.intrinsic.LinearTanh
  torch.nn.intrinsic.BNReLU2d torch.nn.intrinsic.BNReLU3d torch.nn.intrinsic.ConvBn1d
  torch.nn.intrinsic.ConvBn2d torch.nn.intrinsic.ConvBn3d torch.nn.intrinsic.ConvBnReLU1d
  torch.nn.intrinsic.ConvBnReLU2d torch.nn.intrinsic.ConvBnReLU3d torch.nn.intrinsic.ConvReLU1d
  torch.nn.intrinsic.ConvReLU2d torch.nn.intrinsic.ConvReLU3d torch.nn.intrinsic.LinearBn1d
  torch.nn.intrinsic.LinearReLU
torch.nn.Sigmoid: torch.ao.nn.quantized.Sigmoid torch.nn.quantized.Sigmoid
torch.nn.Softmax: torch.ao.nn.quantized.Softmax torch.nn.quantized.Softmax
torch.nn.Upsample: torch.nn.UpsamplingBilinear2d torch.nn.UpsamplingNearest2d
torch.nn.intrinsic.qat.ConvBn1d: torch.ao.nn.intrinsic.qat.ConvBnReLU1d
  torch.nn.intrinsic.qat.ConvBnReLU1d
torch.nn.intrinsic.qat.ConvBn2d: torch.ao.nn.intrinsic.qat.ConvBnReLU2d
  torch.nn.intrinsic.qat.ConvBnReLU2d
torch.nn.intrinsic.qat.ConvBn3d: torch.ao.nn.intrinsic.qat.ConvBnReLU3d
  torch.nn.intrinsic.qat.ConvBnReLU3d
torch.nn.parallel.DistributedDataParallel: torch.nn.parallel.DistributedDataParallelCPU
torch.nn.qat.Conv1d: torch.ao.nn.intrinsic.qat.ConvReLU1d torch.nn.intrinsic.qat.ConvReLU1d
torch.nn.qat.Conv2d: torch.ao.nn.intrinsic.qat.ConvReLU2d torch.nn.intrinsic.qat.ConvReLU2d
torch.nn.qat.Conv3d: torch.ao.nn.intrinsic.qat.ConvReLU3d torch.nn.intrinsic.qat.ConvReLU3d
torch.nn.qat.Linear: torch.ao.nn.intrinsic.qat.LinearReLU torch.nn.intrinsic.qat.LinearReLU
torch.nn.quantized.BatchNorm2d: torch.ao.nn.intrinsic.quantized.BNReLU2d
  torch.nn.intrinsic.quantized.BNReLU2d
torch.nn.quantized.BatchNorm3d: torch.ao.nn.intrinsic.quantized.BNReLU3d
  torch.nn.intrinsic.quantized.BNReLU3d
torch.nn.quantized.Conv1d: torch.ao.nn.intrinsic.quantized.ConvReLU1d torch.ao.nn.quantized.dynamic.Conv1d
  torch.nn.intrinsic.quantized.ConvReLU1d torch.nn.quantized.dynamic.Conv1d
torch.nn.quantized.Conv2d: torch.ao.nn.intrinsic.quantized.ConvAdd2d
  torch.ao.nn.intrinsic.quantized.ConvAddReLU2d torch.ao.nn.intrinsic.quantized.ConvReLU2d
  torch.ao.nn.quantized.dynamic.Conv2d torch.nn.intrinsic.quantized.ConvReLU2d
  torch.nn.quantized.dynamic.Conv2d
torch.nn.quantized.Conv3d: torch.ao.nn.intrinsic.quantized.ConvReLU3d torch.ao.nn.quantized.dynamic.Conv3d
  torch.nn.intrinsic.quantized.ConvReLU3d torch.nn.quantized.dynamic.Conv3d
torch.nn.quantized.ConvTranspose1d: torch.ao.nn.quantized.dynamic.ConvTranspose1d
  torch.nn.quantized.dynamic.ConvTranspose1d
torch.nn.quantized.ConvTranspose2d: torch.ao.nn.quantized.dynamic.ConvTranspose2d
  torch.nn.quantized.dynamic.ConvTranspose2d
torch.nn.quantized.ConvTranspose3d: torch.ao.nn.quantized.dynamic.ConvTranspose3d
  torch.nn.quantized.dynamic.ConvTranspose3d
torch.nn.quantized.Embedding: torch.ao.nn.quantized.EmbeddingBag torch.nn.quantized.EmbeddingBag
torch.nn.quantized.Linear: torch.ao.nn.intrinsic.quantized.LinearLeakyReLU
  torch.ao.nn.intrinsic.quantized.LinearReLU torch.ao.nn.intrinsic.quantized.LinearTanh
  torch.ao.nn.quantized.dynamic.Linear torch.nn.intrinsic.quantized.LinearReLU
  torch.nn.quantized.dynamic.Linear
torch.optim.Adam: torch.optim.AdamW
torch.optim.Optimizer: torch.distributed.optim.PostLocalSGDOptimizer
  torch.distributed.optim.ZeroRedundancyOptimizer
torch.optim.lr_scheduler.LRScheduler: torch.optim.swa_utils.SWALR
torch.quantization.FakeQuantize: torch.ao.quantization.FixedQParamsFakeQuantize
  torch.ao.quantization.FusedMovingAvgObsFakeQuantize torch.quantization.FixedQParamsFakeQuantize
  torch.quantization.FusedMovingAvgObsFakeQuantize
torch.quantization.FakeQuantizeBase: torch.ao.quantization.FakeQuantize torch.quantization.FakeQuantize
torch.quantization.MinMaxObserver: torch.ao.quantization.MovingAverageMinMaxObserver
  torch.quantization.MovingAverageMinMaxObserver
torch.quantization.ObserverBase: torch.ao.quantization.FixedQParamsObserver
  torch.ao.quantization.NoopObserver torch.ao.quantization.PlaceholderObserver
  torch.ao.quantization.RecordingObserver torch.ao.quantization.ReuseInputObserver
  torch.ao.quantization.UniformQuantizationObserverBase torch.quantization.NoopObserver
  torch.quantization.PlaceholderObserver torch.quantization.RecordingObserver
torch.quantization.PerChannelMinMaxObserver: torch.ao.quantization.MovingAveragePerChannelMinMaxObserver
  torch.quantization.MovingAveragePerChannelMinMaxObserver
torch.utils.data.Dataset: torch.utils.data.ConcatDataset torch.utils.data.IterableDataset
  torch.utils.data.MapDataPipe torch.utils.data.StackDataset torch.utils.data.Subset
  torch.utils.data.TensorDataset
torch.utils.data.IterDataPipe: torch.utils.data.DFIterDataPipe
torch.utils.data.IterableDataset: torch.utils.data.ChainDataset torch.utils.data.IterDataPipe
torch.utils.data.Sampler: torch.utils.data.BatchSampler torch.utils.data.DistributedSampler
  torch.utils.data.RandomSampler torch.utils.data.SequentialSampler torch.utils.data.SubsetRandomSampler
  torch.utils.data.WeightedRandomSampler
"""

# Overridden with other parameters: what is true of the base's is not
OTHER_CONTRACT = frozenset(
    """
    torch.ao.quantization.FakeQuantize.calculate_qparams
    torch.ao.quantization.FixedQParamsObserver.calculate_qparams
    torch.ao.quantization.HistogramObserver.calculate_qparams
    torch.ao.quantization.MinMaxObserver.calculate_qparams
    torch.ao.quantization.NoopObserver.calculate_qparams
    torch.ao.quantization.PerChannelMinMaxObserver.calculate_qparams
    torch.ao.quantization.PlaceholderObserver.calculate_qparams
    torch.ao.quantization.RecordingObserver.calculate_qparams
    torch.ao.quantization.ReuseInputObserver.calculate_qparams torch.autograd.NestedIOFunction.backward
    torch.autograd.NestedIOFunction.mark_dirty torch.autograd.NestedIOFunction.mark_non_differentiable
    torch.autograd.NestedIOFunction.save_for_backward
    torch.distributed.fsdp.FullyShardedDataParallel.named_buffers
    torch.distributed.fsdp.FullyShardedDataParallel.named_parameters
    torch.distributed.optim.PostLocalSGDOptimizer.step
    torch.distributed.optim.ZeroRedundancyOptimizer.step
    torch.distributions.CorrCholeskyTransform.log_abs_det_jacobian torch.distributions.HalfCauchy.icdf
    torch.distributions.HalfNormal.icdf torch.distributions.MixtureSameFamily.cdf
    torch.distributions.MixtureSameFamily.log_prob torch.distributions.Wishart.rsample
    torch.distributions.transforms.CorrCholeskyTransform.log_abs_det_jacobian
    torch.jit.RecursiveScriptModule.bfloat16 torch.jit.RecursiveScriptModule.get_buffer
    torch.jit.RecursiveScriptModule.get_parameter torch.jit.RecursiveScriptModule.get_submodule
    torch.jit.RecursiveScriptModule.ipu torch.jit.RecursiveScriptModule.mtia
    torch.jit.RecursiveScriptModule.register_backward_hook
    torch.jit.RecursiveScriptModule.register_forward_hook
    torch.jit.RecursiveScriptModule.register_forward_pre_hook
    torch.jit.RecursiveScriptModule.register_full_backward_hook
    torch.jit.RecursiveScriptModule.register_full_backward_pre_hook
    torch.jit.RecursiveScriptModule.register_load_state_dict_post_hook
    torch.jit.RecursiveScriptModule.register_load_state_dict_pre_hook
    torch.jit.RecursiveScriptModule.register_state_dict_post_hook
    torch.jit.RecursiveScriptModule.register_state_dict_pre_hook
    torch.jit.RecursiveScriptModule.requires_grad_ torch.jit.RecursiveScriptModule.set_submodule
    torch.jit.RecursiveScriptModule.to_empty torch.jit.RecursiveScriptModule.xpu
    torch.optim.lr_scheduler.ChainedScheduler.step
    torch.optim.lr_scheduler.CosineAnnealingWarmRestarts.step
    torch.optim.lr_scheduler.ReduceLROnPlateau.step torch.optim.lr_scheduler.SequentialLR.step
    torch.quantization.FakeQuantize.calculate_qparams
    torch.quantization.HistogramObserver.calculate_qparams
    torch.quantization.MinMaxObserver.calculate_qparams
    torch.quantization.NoopObserver.calculate_qparams
    torch.quantization.PerChannelMinMaxObserver.calculate_qparams
    torch.quantization.PlaceholderObserver.calculate_qparams
    torch.quantization.RecordingObserver.calculate_qparams
    """.split()
)

# torch.nn.NAME(...)(x) is one tensor
SINGLE_LAYERS = frozenset(
    """
    AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d
    AdaptiveMaxPool3d AlphaDropout AvgPool1d AvgPool2d AvgPool3d BCELoss BCEWithLogitsLoss BatchNorm1d
    BatchNorm2d BatchNorm3d Bilinear CELU CTCLoss ChannelShuffle CircularPad1d CircularPad2d
    CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d Conv1d Conv2d Conv3d ConvTranspose1d
    ConvTranspose2d ConvTranspose3d CosineEmbeddingLoss CosineSimilarity CrossEntropyLoss CrossMapLRN2d
    Dropout Dropout1d Dropout2d Dropout3d ELU Embedding EmbeddingBag FeatureAlphaDropout Flatten Fold
    FractionalMaxPool1d FractionalMaxPool2d FractionalMaxPool3d GELU GLU GRUCell GaussianNLLLoss
    GroupNorm Hardshrink Hardsigmoid Hardswish Hardtanh HingeEmbeddingLoss HuberLoss Identity
    InstanceNorm1d InstanceNorm2d InstanceNorm3d KLDivLoss L1Loss LPPool1d LPPool2d LPPool3d LayerNorm
    LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d
    LazyConvTranspose2d LazyConvTranspose3d LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d
    LazyLinear LeakyReLU Linear LinearCrossEntropyLoss LocalResponseNorm LogSigmoid LogSoftmax MSELoss
    MarginRankingLoss MaxPool1d MaxPool2d MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d Mish
    MultiLabelMarginLoss MultiLabelSoftMarginLoss MultiMarginLoss NLLLoss NLLLoss2d PReLU
    PairwiseDistance PixelShuffle PixelUnshuffle PoissonNLLLoss RMSNorm RNNCell RReLU ReLU ReLU6
    ReflectionPad1d ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d
    SELU SiLU Sigmoid SmoothL1Loss SoftMarginLoss Softmax Softmax2d Softmin Softplus Softshrink Softsign
    SyncBatchNorm Tanh Tanhshrink Threshold Transformer TransformerDecoder TransformerDecoderLayer
    TransformerEncoder TransformerEncoderLayer TripletMarginLoss TripletMarginWithDistanceLoss Unflatten
    Unfold Upsample UpsamplingBilinear2d UpsamplingNearest2d ZeroPad1d ZeroPad2d ZeroPad3d
    """.split()
)

# torch.nn.NAME(...)(x) is a tuple of tensors
TUPLE_LAYERS = frozenset(
    """
    GRU LSTM LSTMCell MultiheadAttention RNN
    """.split()
)

# Attributes that are tensors on every layer that has them
LAYER_TENSORS = frozenset(
    """
    bias bias_k bias_v running_mean running_var weight weight_hh weight_ih
    """.split()
)
