"""The networks of FedGenie in PyTorch, with the parameter names of its safetensors files."""

import sys

try:
    import numpy as np  # noqa: F401
    import torch
    from torch import nn
    from torch.nn import functional as F
except ImportError as missing:
    print(f"{missing.name or missing} is not installed. Get it with: pip install torch numpy", file=sys.stderr)
    sys.exit(2)


class Linear(nn.Module):
    """Softmax regression, or linear regression with one output: y = W x + b."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x):
        return self.linear(x.flatten(1))


class Mlp(nn.Module):
    """Dense layers fc1, fc2, … of the widths given (inputs first, outputs last), ReLU between them."""

    def __init__(self, widths):
        super().__init__()
        self.depth = len(widths) - 1
        for layer, (inputs, outputs) in enumerate(zip(widths, widths[1:]), start=1):
            setattr(self, f"fc{layer}", nn.Linear(inputs, outputs))

    def forward(self, x):
        x = x.flatten(1)
        for layer in range(1, self.depth):
            x = F.relu(getattr(self, f"fc{layer}")(x))
        return getattr(self, f"fc{self.depth}")(x)


class LeNet5(nn.Module):
    """Two 5×5 convolutions with max pooling, three dense layers; 44,426 parameters on 1×28×28."""

    def __init__(self, channels=1, side=28, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5)
        left = ((side - 4) // 2 - 4) // 2
        self.fc1 = nn.Linear(16 * left * left, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2).flatten(1)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


class SimpleCnn(nn.Module):
    """Two 3×3 convolutions, one max pooling, dropout, two dense layers; 1,626,442 parameters on 3×32×32."""

    def __init__(self, channels=3, side=32, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 32, 3)
        self.conv2 = nn.Conv2d(32, 64, 3)
        left = (side - 4) // 2
        self.fc1 = nn.Linear(64 * left * left, 128)
        self.fc2 = nn.Linear(128, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv2(F.relu(self.conv1(x)))), 2)
        x = F.relu(self.fc1(F.dropout(x, 0.25, self.training).flatten(1)))
        return self.fc2(F.dropout(x, 0.5, self.training))


class BasicBlock(nn.Module):
    """Two 3×3 convolutions with batch norm and a shortcut, projected where the shape changes."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet18(nn.Module):
    """ResNet-18 with the 3×3 stem for small images; 11,173,962 parameters on three channels."""

    def __init__(self, channels=3, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 64, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        widths = [64, 64, 128, 256, 512]
        for layer in range(1, 5):
            inputs, outputs = widths[layer - 1], widths[layer]
            blocks = BasicBlock(inputs, outputs, 1 if layer == 1 else 2), BasicBlock(outputs, outputs, 1)
            setattr(self, f"layer{layer}", nn.Sequential(*blocks))
        self.fc = nn.Linear(512, classes)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


def count(model):
    """Number of parameters, without the running statistics of batch norm."""
    return sum(parameter.numel() for parameter in model.parameters())


assert count(LeNet5()) == 44_426
assert count(SimpleCnn()) == 1_626_442
