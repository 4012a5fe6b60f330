"""Losses and gradients of PyTorch in float64, for tests of FedGenie's models against them.

Parameters and inputs follow from formulas, so that only the results have to be stored:

- u(i) = ((i * 7919) % 1000) / 1000 - 0.5.
- Parameters are numbered i = 0, 1, … through all tensors in the order of the state dict, running statistics left out.
  Weight and bias of a convolution or dense layer: u(i) * (2 / sqrt(fan_in)), with the fan-in of the weight (input
  channels × kernel area, or inputs) for both. Batch norm: weight 1 + 0.1 * u(i), bias 0.1 * u(i).
- Running statistics of batch norm, channel c of each layer: mean 0.1 * u(c), variance 1 + 0.5 * u(c).
- Pixel j (counted through channels, rows, columns) of example b: ((b * 3571 + j * 131) % 997) / 997.
- Label of example b: b % 10. Batch of 5. Loss: mean cross-entropy. No dropout.

Stored for each tensor of the gradient: sum, sum of squares, first three and last three entries; for the parameters and
inputs, sum and sum of squares, to check that they were filled alike; in training mode, the running statistics after one
forward pass (momentum 0.1, variance with n - 1). `float32` is the error of the same computation in single precision: of
the loss, relative, and of the gradients, the largest over all tensors of |g32 - g64| / |g64| in Euclidean norm.

    python reference_gradients.py [--check] [--out reference_gradients.json]
"""

import argparse
import json
import math
from pathlib import Path

from models import F, LeNet5, ResNet18, SimpleCnn, nn, torch

BATCH = 5
CASES = {
    "lenet5": (LeNet5, (1, 28, 28), False),
    "simple-cnn": (SimpleCnn, (3, 32, 32), False),
    "resnet18-train": (ResNet18, (3, 32, 32), True),
    "resnet18-eval": (ResNet18, (3, 32, 32), False),
}


def u(count, start=0):
    i = torch.arange(start, start + count, dtype=torch.int64)
    return (i * 7919 % 1000).to(torch.float64) / 1000 - 0.5


@torch.no_grad()
def fill(model):
    modules = dict(model.named_modules())
    start = 0
    for name, parameter in model.named_parameters():
        layer, kind = name.rsplit(".", 1)
        values = u(parameter.numel(), start).view_as(parameter)
        start += parameter.numel()
        if isinstance(modules[layer], nn.BatchNorm2d):
            parameter.copy_(0.1 * values + (kind == "weight"))
        else:
            parameter.copy_(values * (2 / math.sqrt(modules[layer].weight[0].numel())))
    for module in modules.values():
        if isinstance(module, nn.BatchNorm2d):
            values = u(module.num_features)
            module.running_mean.copy_(0.1 * values)
            module.running_var.copy_(1 + 0.5 * values)


def inputs(shape):
    pixels = torch.arange(math.prod(shape), dtype=torch.int64)
    rows = [(b * 3571 + pixels * 131) % 997 for b in range(BATCH)]
    return torch.stack(rows).to(torch.float64).div(997).view(BATCH, *shape), torch.arange(BATCH) % 10


def build(name, dtype):
    make, shape, training = CASES[name]
    model = make().double().train(training)
    fill(model)
    images, labels = inputs(shape)
    return model.to(dtype), images.to(dtype), labels


def compute(name, dtype):
    model, images, labels = build(name, dtype)
    loss = F.cross_entropy(model(images), labels)
    loss.backward()
    gradient = {name: parameter.grad for name, parameter in model.named_parameters()}
    return model, images, loss.item(), gradient


def sums(values):
    values = values.detach().double().flatten()
    return {"sum": math.fsum(values.tolist()), "squares": math.fsum(values.square().tolist())}


def summary(values):
    flat = values.detach().flatten().tolist()
    return sums(values) | {"first": flat[:3], "last": flat[-3:]}


def central_difference(name):
    """Relative difference of the slope along a fixed direction and of a central difference of the loss."""
    model, images, labels = build(name, torch.float64)
    _, _, _, gradient = compute(name, torch.float64)
    start = {key: values.clone() for key, values in model.named_parameters()}
    generator = torch.Generator().manual_seed(1)
    way = {key: torch.randn(values.shape, generator=generator, dtype=values.dtype) for key, values in start.items()}
    for key, values in way.items():  # every tensor weighs alike
        values.div_(values.norm()).mul_(gradient[key].sign() * values.sign())
    slope = sum((gradient[key] * way[key]).sum().item() for key in start)
    step = 1e-8
    losses = []
    for sign in (1, -1):
        with torch.no_grad():
            for key, values in model.named_parameters():
                values.copy_(start[key] + sign * step * way[key])
            losses.append(F.cross_entropy(model(images), labels).item())
    return abs((losses[0] - losses[1]) / (2 * step) / slope - 1)


def reference(name):
    model, images, loss, gradient = compute(name, torch.float64)
    fresh = build(name, torch.float64)[0]
    _, _, loss32, gradient32 = compute(name, torch.float32)
    error = max(((gradient32[key].double() - g).norm() / g.norm()).item() for key, g in gradient.items())
    found = {
        "parameters": sums(nn.utils.parameters_to_vector(fresh.parameters())),
        "inputs": sums(images),
        "loss": loss,
        "float32": {"loss": float(f"{abs(loss32 / loss - 1):.2e}"), "gradient": float(f"{error:.2e}")},
        "gradient": {key: {"shape": list(g.shape)} | summary(g) for key, g in gradient.items()},
    }
    if model.training and any("running" in key for key in model.state_dict()):
        buffers = model.named_buffers()
        found["running"] = {key: summary(values) for key, values in buffers if "running" in key}
    return found


def text(found):
    """JSON with one line for each tensor."""
    lines = []
    for name, case in found.items():
        parts = []
        for key, value in case.items():
            if key in ("gradient", "running"):
                tensors = [f"   {json.dumps(tensor)}: {json.dumps(entry)}" for tensor, entry in value.items()]
                parts.append(f"  {json.dumps(key)}: {{\n" + ",\n".join(tensors) + "\n  }")
            else:
                parts.append(f"  {json.dumps(key)}: {json.dumps(value)}")
        lines.append(f" {json.dumps(name)}: {{\n" + ",\n".join(parts) + "\n }")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("reference_gradients.json"))
    parser.add_argument("--check", action="store_true", help="compare with central differences, write nothing")
    options = parser.parse_args()
    torch.set_num_threads(1)  # the same order of sums everywhere
    if options.check:
        for name in CASES:
            print(f"{name:<15} central difference along one direction: relative difference {central_difference(name):.1e}")
        return
    found = {name: reference(name) for name in CASES}
    options.out.write_text(text(found))
    for name, case in found.items():
        print(f"{name:<15} loss {case['loss']:.12f}, error in float32: {case['float32']}")


if __name__ == "__main__":
    main()
