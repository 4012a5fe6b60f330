"""What FLGo asks of a benchmark: a generator, a pipe and a calculator."""

import numpy as np
import torch
from flgo.benchmark.toolkits.cv.classification import FromDatasetGenerator, FromDatasetPipe, GeneralCalculator
from torch.utils.data import TensorDataset
from work import Task

task = Task()
images, labels = (torch.from_numpy(np.array(values)) for values in (task.images, task.labels))
train_data, test_data = TensorDataset(images.flatten(0, 1), labels.flatten()), TensorDataset(*task.test_set())


class TaskGenerator(FromDatasetGenerator):
    def __init__(self):
        super().__init__(benchmark="flgo_clients", train_data=train_data, test_data=test_data)


class TaskPipe(FromDatasetPipe):
    class TaskDataset(FromDatasetPipe.TaskDataset):
        def __getitems__(self, indices):  # today's PyTorch asks for it
            return [self[k] for k in indices]

    def __init__(self, task_path):
        super().__init__(task_path, train_data=train_data, test_data=test_data)


TaskCalculator = GeneralCalculator
