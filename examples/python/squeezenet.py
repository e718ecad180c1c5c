"""A small convolutional network (SqueezeNet's shape, weights from a seed), in torch or NumPy.

`model(frame)` takes a picture, uint8 of height x width x 3, and gives the scores of its classes, float32. Both libraries
have the same weights; their scores differ by rounding.
"""

import importlib
from typing import Any

import numpy as np

CLASSES = 1000
FIRES = [  # channels of squeeze and of each expand; None: a pool
    (16, 64), (16, 64), None, (32, 128), (32, 128), None, (48, 192), (48, 192), (64, 256), (64, 256),
]
MEAN, DEVIATION = (123.7, 116.3, 103.5), (58.4, 57.1, 57.4)


def weights(seed: int = 1) -> list[Any]:
    """The layers' (kernel, bias), in the order in which the network uses them."""
    random = np.random.default_rng(seed)
    made: list[Any] = []

    def layer(inputs: int, outputs: int, size: int) -> int:
        scale = np.float32(np.sqrt(2 / (inputs * size * size)))
        kernel = random.standard_normal((outputs, inputs, size, size), np.float32) * scale
        made.append((kernel, random.standard_normal(outputs, np.float32) * np.float32(0.1)))
        return outputs

    channels = layer(3, 64, 3)
    for fire in filter(None, FIRES):
        squeezed = layer(channels, fire[0], 1)
        channels = layer(squeezed, fire[1], 1) + layer(squeezed, fire[1], 3)
    layer(channels, CLASSES, 1)
    return made


class TorchLayers:
    """Layers on torch's current device and stream."""

    def __init__(self, device: str):
        self.torch: Any = importlib.import_module("torch")
        self.device = device
        self.torch.backends.cudnn.deterministic = True  # the same frame gives the same bytes

    def array(self, of: Any) -> Any:
        return self.torch.from_numpy(np.ascontiguousarray(of)).to(self.device)

    def image(self, picked: Any) -> Any:
        return picked.permute(2, 0, 1).unsqueeze(0).float()

    def conv(self, x: Any, kernel: Any, bias: Any, stride: int = 1) -> Any:
        padding = kernel.shape[2] // 2 if stride == 1 else 0
        return self.torch.nn.functional.conv2d(x, kernel, bias, stride, padding).relu_()

    def pool(self, x: Any) -> Any:
        return self.torch.nn.functional.max_pool2d(x, 3, 2)

    def join(self, a: Any, b: Any) -> Any:
        return self.torch.cat((a, b), 1)


class NumpyLayers:
    def array(self, of: Any) -> Any:
        return of

    def image(self, picked: Any) -> Any:
        return picked.transpose(2, 0, 1)[None].astype(np.float32)

    def windows(self, x: Any, size: int, stride: int) -> Any:
        return np.lib.stride_tricks.sliding_window_view(x, (size, size), (2, 3))[:, :, ::stride, ::stride]

    def conv(self, x: Any, kernel: Any, bias: Any, stride: int = 1) -> Any:
        border = kernel.shape[2] // 2 if stride == 1 else 0
        x = np.pad(x, ((0, 0), (0, 0), (border, border), (border, border)))
        windows = self.windows(x, kernel.shape[2], stride)
        y = np.tensordot(windows, kernel, ((1, 4, 5), (1, 2, 3))) + bias
        return np.maximum(y, 0).transpose(0, 3, 1, 2)

    def pool(self, x: Any) -> Any:
        return self.windows(x, 3, 2).max((4, 5))

    def join(self, a: Any, b: Any) -> Any:
        return np.concatenate((a, b), 1)


class SqueezeNet:
    def __init__(self, layers: Any, height: int, width: int, size: int, seed: int = 1):
        self.layers = layers
        self.weights = [tuple(map(layers.array, pair)) for pair in weights(seed)]
        self.rows = layers.array((np.arange(size) * height // size)[:, None])  # of the frame: the nearest pixels
        self.columns = layers.array(np.arange(size) * width // size)
        self.mean = layers.array(np.array(MEAN, np.float32).reshape(3, 1, 1))
        self.scale = layers.array(1 / np.array(DEVIATION, np.float32).reshape(3, 1, 1))

    def prepare(self, frame: Any) -> Any:
        """A float image of size x size, normalized."""
        return (self.layers.image(frame[self.rows, self.columns]) - self.mean) * self.scale

    def __call__(self, frame: Any) -> Any:
        layers, left = self.layers, iter(self.weights)
        x = layers.pool(layers.conv(self.prepare(frame), *next(left), stride=2))
        for fire in FIRES:
            if fire is None:
                x = layers.pool(x)
                continue
            x = layers.conv(x, *next(left))
            x = layers.join(layers.conv(x, *next(left)), layers.conv(x, *next(left)))
        return layers.conv(x, *next(left)).mean((2, 3))[0]
