"""Draws the files in this folder from a fixed seed. Needs Python 3.9 or newer, nothing else: `python3 make.py`."""

import gzip
import json
import math
import pathlib
import random
import struct
import zlib

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


def matlab(name, dimensions, content):
    """An array of bytes as an element of a MAT file of level 5, packed."""
    def element(kind, content):
        return struct.pack("<2I", kind, len(content)) + content + bytes(-len(content) % 8)

    flags, sizes = struct.pack("<2I", 9, 0), struct.pack(f"<{len(dimensions)}i", *dimensions)
    array = element(6, flags) + element(5, sizes) + element(1, name.encode()) + element(2, content)
    packed = zlib.compress(element(14, array), 9)
    return struct.pack("<2I", 15, len(packed)) + packed


def svhn():
    """As SVHN: row, column, colour and image in this order, the first fastest, and 10 for the digit 0."""
    rng = random.Random("svhn")
    prototypes = [[[rng.choice((32, 96, 160, 224)) for _ in range(16)] for _ in range(3)] for _ in range(10)]
    (HERE / "svhn").mkdir(exist_ok=True)
    for part, count in (("train", 6), ("test", 4)):
        digits = [digit for digit in range(10) for _ in range(count)]
        images = bytearray()
        for digit in digits:
            image = flags(rng, prototypes, digit)
            images += bytes(image[1024 * c + 32 * y + x] for c in range(3) for x in range(32) for y in range(32))
        head = b"MATLAB 5.0 MAT-file, drawn by make.py".ljust(124) + b"\x00\x01IM"
        arrays = matlab("X", (32, 32, 3, len(digits)), bytes(images))
        arrays += matlab("y", (len(digits), 1), bytes(digit or 10 for digit in digits))
        (HERE / "svhn" / f"{part}_32x32.mat").write_bytes(head + arrays)


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


def reviews():
    """Reviews in the format of Amazon's categories: 80 reviewers with a taste each, 60 products, five reviews at least; a few twice."""
    rng = random.Random("reviews")
    taste = [[rng.gauss(0, 1) for _ in range(3)] for _ in range(140)]
    appeal = [rng.gauss(0, 0.8) for _ in range(60)]
    rows = []
    for reviewer in range(80):
        liking = lambda product: appeal[product] + sum(a * b for a, b in zip(taste[reviewer], taste[80 + product]))
        weights = [math.exp(liking(product)) for product in range(60)]
        chosen = set()
        while len(chosen) < 5 + reviewer % 16:
            chosen.add(rng.choices(range(60), weights)[0])
        for product in sorted(chosen):
            stars = min(5, max(1, round(3.6 + 0.7 * liking(product) + rng.gauss(0, 0.7))))
            rows.append((1_400_000_000 + rng.randrange(10**7), f"R{reviewer:03}", f"P{product:03}", float(stars)))
    rows.sort()
    rows += rng.sample(rows, 7)
    keys = ("unixReviewTime", "reviewerID", "asin", "overall")
    text = "".join(json.dumps(dict(zip(keys, row)) | {"reviewText": "drawn"}) + "\n" for row in rows)
    packed(HERE / "reviews_5.json.gz", text.encode())


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
svhn()
fruit()
reviews()
counts()
regression()
latencies()
