"""FedJAX: its federated averaging, compiled by JAX in the first round."""

import sys

import fedjax
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
from work import Clock, Task


def scores(batch, linear, train):
    """The networks of models.py, with PyTorch's initial weights; images have the colours last, as XLA likes them."""
    x = batch["x"]
    if linear:
        return hk.Linear(10, w_init=jnp.zeros)(x)
    drop = hk.dropout if train else lambda _key, _rate, values: values
    key = hk.next_rng_key if train else lambda: None
    init = hk.initializers.VarianceScaling(1 / 3, "fan_in", "uniform")
    for channels in (32, 64):
        x = jax.nn.relu(hk.Conv2D(channels, 3, padding="VALID", w_init=init)(x))
    x = hk.MaxPool((1, 2, 2, 1), (1, 2, 2, 1), padding="VALID")(x)
    x = jax.nn.relu(hk.Linear(128, w_init=init)(drop(key(), 0.25, x).reshape(len(x), -1)))
    return hk.Linear(10, w_init=init)(drop(key(), 0.5, x))


def main():
    task, clock = Task(), Clock()
    work, linear = task.work, task.name == "lr-mnist"

    def features(images):
        return np.array(images) if linear else np.ascontiguousarray(np.moveaxis(images, -3, -1))

    training = hk.transform(lambda batch: scores(batch, linear, True))
    testing = hk.without_apply_rng(hk.transform(lambda batch: scores(batch, linear, False)))
    model = fedjax.create_model_from_haiku(
        transformed_forward_pass=training,
        sample_batch={"x": features(task.images[0, :1]), "y": np.array(task.labels[0, :1])},
        train_loss=lambda batch, preds: fedjax.metrics.unreduced_cross_entropy_loss(batch["y"], preds),
        train_kwargs={},
        eval_kwargs={},
    )

    @jax.jit
    def losses(params, x, y):
        found = testing.apply(params, {"x": x})
        chances = jax.nn.log_softmax(found)
        return -jnp.take_along_axis(chances, y[:, None], 1).sum(), (found.argmax(1) == y).sum()

    def test(params):
        step = len(task.test_labels) if linear else 500
        loss = right = 0
        for at in range(0, len(task.test_labels), step):
            part = slice(at, at + step)
            one, two = losses(params, features(task.test_images[part]), np.array(task.test_labels[part]))
            loss, right = loss + float(one), right + int(two)
        return loss / len(task.test_labels), right / len(task.test_labels)

    algorithm = fedjax.algorithms.fed_avg.federated_averaging(
        fedjax.model_grad(model),
        fedjax.optimizers.sgd(work.rate),
        fedjax.optimizers.sgd(1.0),
        fedjax.ShuffleRepeatBatchHParams(batch_size=work.batch, num_epochs=1),
    )
    data = {
        k: {"x": features(images), "y": np.array(labels)}
        for k, (images, labels) in enumerate(zip(task.images, task.labels))
    }
    sampler = fedjax.client_samplers.UniformGetClientSampler(fedjax.InMemoryFederatedData(data), work.cohort, seed=0)
    state, found = algorithm.init(model.init(jax.random.PRNGKey(1))), None
    clock.start()
    for number in range(1, work.rounds + 1):
        state, _ = algorithm.apply(state, sampler.sample())
        if task.tests(number):
            found = test(state.params)
    jax.block_until_ready(state.params)
    clock.stop()
    clock.report(*(found or test(state.params)))


if __name__ == "__main__":
    sys.exit(main())
