#!/bin/sh
python -m torch.distributed.launch --use_env --nproc_per_node 4 train.py
