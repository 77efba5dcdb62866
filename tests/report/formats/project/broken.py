import torch

def (:
