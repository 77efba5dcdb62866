"""Gradients of every sample, and an ensemble, with functorch."""

from functorch import combine_state_for_ensemble, grad, make_functional_with_buffers, vmap
from torch.nn.functional import cross_entropy


def gradient_norms(model, images, labels):
    fmodel, params, buffers = make_functional_with_buffers(model)

    def loss(params, buffers, image, label):
        return cross_entropy(fmodel(params, buffers, image.unsqueeze(0)), label.unsqueeze(0))

    grads = vmap(grad(loss), in_dims=(None, None, 0, 0))(params, buffers, images, labels)
    return sum(g.flatten(1).pow(2).sum(1) for g in grads).sqrt()


def votes(models, images):
    fmodel, params, buffers = combine_state_for_ensemble(models)
    return vmap(fmodel, in_dims=(0, 0, None))(params, buffers, images)
