"""Frames through a network in torch, several under way at once, in order: on threads of the CPU, or on a GPU: pip install torch"""
from concurrent.futures import ThreadPoolExecutor
import torch
import weir

REQUESTS = 4


def network(seed: int = 1) -> torch.nn.Module:
    """Three convolutions with weights from a seed, and the mean of each channel."""
    torch.manual_seed(seed)
    layers: list[torch.nn.Module] = []
    for inputs, outputs in (3, 32), (32, 64), (64, 64):
        layers += [torch.nn.Conv2d(inputs, outputs, 3, padding=1), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten()).requires_grad_(False).eval()


@weir.operator
class InferTorch:
    inputs, outputs = [weir.Port("in", capacity=2 * REQUESTS)], ["out"]

    def start(self, ctx: weir.Context) -> None:
        self.model = network()
        self.pool = ThreadPoolExecutor(REQUESTS, initializer=torch.set_num_threads, initargs=(1,))

    def compute(self, ctx: weir.Context) -> None:  # torch's futures wait, weir's and the pool's call back
        ctx.emit("out", self.pool.submit(self.model, torch.from_dlpack(ctx.receive("in"))))


@weir.operator
class InferTorchGpu:
    inputs, outputs, uses_stream = [weir.Port("in", capacity=2 * REQUESTS, place="device")], ["out"], True

    def start(self, ctx: weir.Context) -> None:
        self.model = network().to(f"cuda:{ctx.device}")

    def compute(self, ctx: weir.Context) -> None:  # only enqueues: the message is on its way, and receivers wait for the device
        with ctx.stream:
            ctx.emit("out", self.model(torch.from_dlpack(ctx.receive("in"))))
