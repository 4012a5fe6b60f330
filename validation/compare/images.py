"""Readers of image folders: IDX (MNIST, Fashion-MNIST) and the binary version of CIFAR-10, plain or gzip."""

import gzip
from pathlib import Path

from models import np

IDX_TEST = "t10k-images-idx3-ubyte"
CIFAR_ROW = 1 + 3 * 32 * 32


def contents(path):
    data = path.read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def find(folder, name):
    """The file of that name, with or without .gz."""
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    raise FileNotFoundError(f"{folder}: neither {name} nor {name}.gz is there")


def idx_folder(folder):
    """The folder itself, or its folder `fashion-mnist`, whichever holds the IDX files."""
    folder = Path(folder)
    for place in (folder, folder / "fashion-mnist"):
        try:
            find(place, IDX_TEST)
            return place
        except FileNotFoundError:
            pass
    raise FileNotFoundError(f"{folder}: no {IDX_TEST}[.gz] there, nor in its folder fashion-mnist")


def read_idx(path, dimensions):
    data = contents(path)
    header = 4 + 4 * dimensions
    words = np.frombuffer(data[:header], ">u4")
    magic, shape = int(words[0]), [int(size) for size in words[1:]]
    if magic != 2048 + dimensions:
        raise ValueError(f"{path}: first word {magic}, an IDX file of {dimensions} dimensions has {2048 + dimensions}")
    values = np.frombuffer(data, np.uint8, offset=header)
    if values.size != np.prod(shape):
        raise ValueError(f"{path}: {values.size} values, the header promises {shape}")
    return values.reshape(shape)


def load_idx(folder, part):
    """Pixels / 255 as float32 of shape (images, 1, rows, columns), and labels as int64; `part` is train or t10k."""
    images = read_idx(find(folder, f"{part}-images-idx3-ubyte"), 3)
    labels = read_idx(find(folder, f"{part}-labels-idx1-ubyte"), 1)
    if len(images) != len(labels):
        raise ValueError(f"{folder}: {len(images)} images and {len(labels)} labels in {part}")
    return images[:, None].astype(np.float32) / np.float32(255), labels.astype(np.int64)


def load_cifar(paths):
    """Pixels / 255 as float32 of shape (images, 3, 32, 32), and labels as int64, of all the files in order."""
    rows = []
    for path in paths:
        data = np.frombuffer(contents(path), np.uint8)
        if data.size % CIFAR_ROW:
            raise ValueError(f"{path}: {data.size} bytes are no whole number of rows of {CIFAR_ROW}")
        rows.append(data.reshape(-1, CIFAR_ROW))
    rows = np.concatenate(rows)
    return rows[:, 1:].reshape(-1, 3, 32, 32).astype(np.float32) / np.float32(255), rows[:, 0].astype(np.int64)


def load_test(folder):
    """The test images and labels of a folder of either kind."""
    folder = Path(folder)
    cifar = sorted([*folder.glob("test*.bin"), *folder.glob("test*.bin.gz")])
    return load_cifar(cifar) if cifar else load_idx(idx_folder(folder), "t10k")
