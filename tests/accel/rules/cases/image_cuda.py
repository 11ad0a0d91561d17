"""CUDA of images against GPUs and drivers."""

from accel.rules.jobs import image_cuda

from .case import Case

H100, T4, V100, B200 = "nvidia-h100-80gb", "nvidia-tesla-t4", "nvidia-tesla-v100", "nvidia-b200"
OLD, NEW = "pytorch/pytorch:2.0.0-cuda11.7-cudnn8-runtime", "nvidia/cuda:13.0.2-runtime-ubuntu24.04"

CASES = [
    Case(
        "container.image.cuda", "image", ("CUDA 11.7", "wants 11.8"), "11.8 or later",
        lambda: image_cuda.image(OLD, [H100]),
        lambda: image_cuda.image(OLD, [T4, "tpu-v5p"]) + image_cuda.image("a/b:2.1.0-cuda11.8-cudnn8", [H100]),
    ),
    Case(
        "container.image.cuda-dropped", "image", ("CUDA 13.0", "12.9 was the last for nvidia-tesla"), "12.9 or older",
        lambda: image_cuda.image(NEW, [T4, V100]),
        lambda: image_cuda.image(NEW, [T4]) + image_cuda.image("a/b:cu129", [V100]),
    ),
    Case(
        "container.image.driver", "image", ("CUDA 13.0", "driver is 570.195.03", "wants 580"), "older CUDA",
        lambda: image_cuda.image(NEW, [H100], driver=(570, 195, 3)),
        lambda: image_cuda.image(NEW, [H100], driver=(580,)) + image_cuda.image(NEW, [H100]),
    ),
    Case(
        "container.image.driver-minor", "image", ("CUDA 12.8", "driver is 535.104.05", "its own is 570.26"), "PTX",
        lambda: image_cuda.image("registry/train:1", [H100], cuda=(12, 8, 1), driver=(535, 104, 5)),
        lambda: image_cuda.image("registry/train:1", [H100], cuda=(12, 8, 1), driver=(570, 26))
        + image_cuda.image("registry/train:1", [H100], driver=(535, 104, 5)),
    ),
    Case(
        "accelerator.driver", "accelerator", ("nvidia-b200", "550.54.14 is older"), "570.26 or later",
        lambda: image_cuda.image("registry/train:1", [H100, B200], driver=(550, 54, 14)),
        lambda: image_cuda.image("registry/train:1", [H100, B200], driver=(570, 133, 20)),
    ),
]  # fmt: skip
