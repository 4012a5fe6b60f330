"""The model and the metric that APPFL's configuration names."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent))

import torch
from work import Task


class Model(torch.nn.Module):
    def __new__(cls, work):
        return Task().model()


def accuracy(truth, scores):
    return float((scores.argmax(1) == truth).mean())
