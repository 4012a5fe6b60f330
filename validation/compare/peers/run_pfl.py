"""pfl: its simulated backend, in two processes of one thread under torchrun, as its documentation has it."""

import os

import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.callback.central_evaluation import CentralEvaluationCallback
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.sampling import get_user_sampler
from pfl.hyperparam import NNEvalHyperParams, NNTrainHyperParams
from pfl.metrics import Metrics, Weighted
from pfl.model.pytorch import PyTorchModel
from work import Clock, Task


class Timer(TrainingProcessCallback):
    def __init__(self, clock):
        self.clock = clock

    def on_train_begin(self, *, model):
        self.clock.start()
        return Metrics()

    def on_train_end(self, *, model):
        self.clock.stop()


def losses(network):
    """The network with the two functions that pfl asks for."""

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.network = network

        def forward(self, images):
            return self.network(images)

        def loss(self, images, labels):
            self.train()
            return torch.nn.functional.cross_entropy(self(images), labels)

        def metrics(self, images, labels):
            self.eval()
            with torch.no_grad():
                scores = self(images)
            loss = torch.nn.functional.cross_entropy(scores, labels, reduction="sum").item()
            right = (scores.argmax(1) == labels).sum().item()
            return {"loss": Weighted(loss, len(labels)), "accuracy": Weighted(right, len(labels))}

    return Net()


def main():
    torch.set_num_threads(1)
    task = Task()
    work = task.work
    net = losses(task.model())
    model = PyTorchModel(net, torch.optim.SGD, torch.optim.SGD(net.parameters(), lr=1.0))
    users = [Dataset(task.client(k), user_id=str(k)) for k in range(task.clients)]
    sampler = get_user_sampler("minimize_reuse", list(range(task.clients)))
    training = FederatedDataset(users.__getitem__, sampler)
    clock, callbacks = Clock(), []
    if work.every:
        test = Dataset(task.test_set())
        callbacks.append(CentralEvaluationCallback(test, NNEvalHyperParams(local_batch_size=None), work.every))
    FederatedAveraging().run(
        algorithm_params=NNAlgorithmParams(
            central_num_iterations=work.rounds,
            evaluation_frequency=work.rounds + 1,
            train_cohort_size=work.cohort,
            val_cohort_size=0,
        ),
        backend=SimulatedBackend(training_data=training, val_data=None),
        model=model,
        model_train_params=NNTrainHyperParams(
            local_num_epochs=1, local_learning_rate=work.rate, local_batch_size=work.batch
        ),
        model_eval_params=NNEvalHyperParams(local_batch_size=None),
        callbacks=[*callbacks, Timer(clock)],
    )
    if int(os.environ.get("RANK", 0)) == 0:
        clock.report(*task.test(net))


if __name__ == "__main__":
    main()
