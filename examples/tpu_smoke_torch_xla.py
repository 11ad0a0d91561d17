"""Smoke test of a TPU slice: what PyTorch/XLA sees of it, and whether each of its devices computes.

Every host of the slice runs it, and on each there is a process for every device. Without torch_xla it does the same
once, with plain torch on the CPU.

    REQUIRE_TPU      1: fail where there is no TPU

Exit codes: 0 all is well, 1 something is wrong, 2 a bad setting.
API: https://docs.pytorch.org/xla/release/r2.8/learn/api-guide.html
"""

import importlib.util
import os
import sys

SIZE = 256  # of a matrix of ones: each element of its square is SIZE, which bfloat16 holds exactly


def matmul(device):
    """Return a product that the device computes."""
    import torch

    ones = torch.ones(SIZE, SIZE, dtype=torch.bfloat16, device=device)
    return ones @ ones


def check(who, product):
    """Print the result. End the process if it is wrong."""
    lowest, highest = float(product.min()), float(product.max())
    print(f"{who}: matmul {lowest:.0f} to {highest:.0f}, expected {SIZE}", flush=True)
    if (lowest, highest) != (SIZE, SIZE):
        sys.exit(1)


def on_xla(index, require_tpu):
    """Check a device in a process of its own, which alone may open it."""
    import torch_xla
    import torch_xla.runtime as xr

    device, kind = torch_xla.device(), xr.device_type()
    who = f"process {xr.global_ordinal()} of {xr.world_size()}"
    count = xr.global_runtime_device_count()
    print(f"{who}: {torch_xla.device_count()} of {count} devices, {kind} ({device})", flush=True)
    if require_tpu and kind != "TPU":
        sys.exit(f"error: REQUIRE_TPU: is 1, but PyTorch/XLA sees no TPU, only {kind}")
    product = matmul(device)
    torch_xla.sync()
    check(who, product.cpu())


def main():
    require = os.environ.get("REQUIRE_TPU", "0")
    if require not in ("0", "1"):
        print(f"error: REQUIRE_TPU: must be 0 or 1, is {require!r}", file=sys.stderr)
        return 2
    if importlib.util.find_spec("torch") is None:
        print("error: torch is not installed here; on a TPU: pip install torch 'torch_xla[tpu]'", file=sys.stderr)
        return 1
    if importlib.util.find_spec("torch_xla"):
        import torch_xla

        torch_xla.launch(on_xla, args=(require == "1",))
        return 0
    if require == "1":
        print("error: REQUIRE_TPU: is 1, but torch_xla is not installed here", file=sys.stderr)
        return 1
    print("process 0 of 1: torch_xla is not installed here: plain torch on the CPU", flush=True)
    check("process 0 of 1", matmul("cpu"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
