"""The training of one client in an actor of Flower, which keeps the model and the data that it has met."""

from functools import cache

from work import Task

from models import torch
from workers import OPTIMIZERS, train_client


@cache
def prepared(name, folder):
    torch.set_num_threads(1)
    task = Task(name, folder)
    model = task.model().train()
    return task, model, OPTIMIZERS["plain"](model.parameters(), task.work.rate, 0.0)


def train(name, folder, client, arrays):
    """State of the model after an epoch on the client's data, and how many examples these are."""
    task, model, optimizer = prepared(name, folder)
    model.load_state_dict(arrays.to_torch_state_dict())
    images, labels = task.client(client)
    train_client(model, optimizer, images, labels, task.work.batch)
    return model.state_dict(), len(labels)
