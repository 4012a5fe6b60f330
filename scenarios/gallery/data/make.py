"""Draws the files in this folder from a fixed seed. Needs Python 3.9 or newer, nothing else: `python3 make.py`."""

import gzip
import pathlib
import random
import struct

HERE = pathlib.Path(__file__).resolve().parent


def packed(path, content):
    """Writes gzip without a time stamp, so that the same content gives the same file."""
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(content, 9, mtime=0))


def lines(rng, count):
    """Images of 8 × 8 bytes with one noisy line. Class: 0 lying, 1 standing, 2 rising, 3 falling."""
    images, labels = bytearray(), bytearray()
    for i in range(count):
        label = i % 4
        shift = rng.randrange(-2, 3)
        for y in range(8):
            for x in range(8):
                on = (y == 4 + shift, x == 4 + shift, x + y == 7 + shift, x - y == shift)[label]
                level = rng.gauss(0.8 if on else 0.2, 0.15)
                images.append(16 * min(15, max(0, round(15 * level))))   # 16 grey levels pack well
        labels.append(label)
    return bytes(images), bytes(labels)


def idx():
    rng = random.Random("idx")
    for part, count in (("train", 300), ("t10k", 80)):
        images, labels = lines(rng, count)
        packed(HERE / "idx" / f"{part}-images-idx3-ubyte.gz", struct.pack(">4I", 2051, count, 8, 8) + images)
        packed(HERE / "idx" / f"{part}-labels-idx1-ubyte.gz", struct.pack(">2I", 2049, count) + labels)


def flags(rng, prototypes, label):
    """An image of 3 × 32 × 32 bytes: the 4 × 4 colour fields of a class, two of them repainted."""
    fields = [list(channel) for channel in prototypes[label]]
    for _ in range(2):
        field = rng.randrange(16)
        for channel in fields:
            channel[field] = rng.choice((32, 96, 160, 224))
    rows = (channel[4 * (y // 8) + x // 8] for channel in fields for y in range(32) for x in range(32))
    return bytes(rows)


def cifar():
    rng = random.Random("cifar")
    for folder, classes, train, test in (("cifar10", 10, 6, 4), ("cifar100", 100, 2, 1)):
        prototypes = [[[rng.choice((32, 96, 160, 224)) for _ in range(16)] for _ in range(3)] for _ in range(classes)]
        for part, count in (("train", train), ("test", test)):
            rows = bytearray()
            for label in (label for label in range(classes) for _ in range(count)):   # neighbours of one class pack well
                rows += bytes([label]) if folder == "cifar10" else bytes([label // 5, label])   # coarse, fine
                rows += flags(rng, prototypes, label)
            packed(HERE / folder / f"{part}.bin.gz", bytes(rows))


def fruit():
    """A table: 12 orchards, which differ in size and in their mixture of three kinds of fruit."""
    rng = random.Random("fruit")
    kinds = {"apple": (7.5, 1.0, 160), "pear": (6.8, 1.35, 175), "plum": (4.2, 1.15, 60)}   # cm, length / width, g
    rows = []
    for orchard in range(12):
        mixture = [rng.gammavariate(0.6, 1) + 0.02 for _ in kinds]
        for _ in range(rng.randrange(15, 46)):
            kind = rng.choices(list(kinds), mixture)[0]
            width, shape, grams = kinds[kind]
            width *= rng.gauss(1, 0.1)
            length = width * shape * rng.gauss(1, 0.08)
            grams *= rng.gauss(1, 0.2)
            rows.append(f"orchard-{orchard + 1:02},{width:.1f},{length:.1f},{grams:.0f},{rng.gauss(4.5, 1.2):.1f},{kind}\n")
    rng.shuffle(rows)
    (HERE / "fruit.csv").write_text("orchard,width_cm,length_cm,weight_g,firmness,kind\n" + "".join(rows))


def counts():
    """How many examples of each class a client gets, for `partition = { class-counts = … }`."""
    rng = random.Random("counts")
    rows = ["client,apple,pear,plum\n"]
    for client in range(12):
        row = [rng.randrange(2, 6)] * 3
        row[client % 3] = rng.randrange(12, 25)
        rows.append(f"{client}," + ",".join(map(str, row)) + "\n")
    (HERE / "class_counts.csv").write_text("".join(rows))


def npy(name, shape, values):
    header = str({"descr": "<f4", "fortran_order": False, "shape": shape})
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    path = HERE / "npy" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(values)}f", *values))


def regression():
    """y = 1 + Σ w_i x_i + noise of standard deviation 0.3."""
    rng = random.Random("npy")
    weights = (0.5, -1.0, 1.5, 2.0, 0.0)
    for part, count in (("train", 280), ("test", 100)):
        x = [[rng.random() for _ in weights] for _ in range(count)]
        y = [1 + sum(w * v for w, v in zip(weights, row)) + rng.gauss(0, 0.3) for row in x]
        npy(f"{part}_x.npy", (count, len(weights)), [v for row in x for v in row])
        npy(f"{part}_y.npy", (count,), y)


def latencies():
    """Compute times in seconds, one a line: most jobs are quick, one in ten is slow."""
    rng = random.Random("latencies")
    times = (rng.lognormvariate(-1.2, 0.3) if rng.random() < 0.9 else rng.uniform(1, 2) for _ in range(100))
    (HERE / "compute_seconds.txt").write_text("# drawn by make.py\n" + "".join(f"{time:.3f}\n" for time in times))


idx()
cifar()
fruit()
counts()
regression()
latencies()
