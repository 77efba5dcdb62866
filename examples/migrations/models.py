"""Pretrained models, by name and through wrappers."""

from torchvision import models


def backbone(pretrained=False, **kwargs):
    return models.resnet50(pretrained=pretrained, **kwargs)


def named(name):
    return models.__dict__[name](pretrained=True)


detector = models.detection.fasterrcnn_resnet50_fpn(pretrained=False, pretrained_backbone=True)
