"""Smoke test of a TPU slice: what JAX sees of it, and whether its chips compute and add up across all hosts.

Every host of the slice runs it. If a job has several, the variables that accel sets bring them together:
JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES, JAX_PROCESS_ID. On a machine without a TPU it does the same on the CPU.

    REQUIRE_TPU      1: fail where there is no TPU

Exit codes: 0 all is well, 1 something is wrong, 2 a bad setting.
"""

import os
import sys

SIZE = 256  # of a matrix of ones: each element of its square is SIZE, which bfloat16 holds exactly


def meet():
    """Connect the processes of a job that has several. Only then is their number in the environment."""
    import jax

    address = os.environ.get("JAX_COORDINATOR_ADDRESS")
    if address is None:
        return
    numbers = {}
    for name in ("JAX_NUM_PROCESSES", "JAX_PROCESS_ID"):
        text = os.environ.get(name, "")
        if not text.isdigit():
            print(f"error: {name}: must be a whole number beside JAX_COORDINATOR_ADDRESS, is {text!r}", file=sys.stderr)
            sys.exit(2)
        numbers[name] = int(text)
    jax.distributed.initialize(address, *numbers.values())


def matmul():
    """Return one element of a product, compiled, on the first device of this process, or None if the elements
    differ."""
    import jax

    ones = jax.numpy.ones((SIZE, SIZE), jax.numpy.bfloat16)
    product = jax.jit(lambda left, right: left @ right)(ones, ones)
    lowest, highest = float(product.min()), float(product.max())
    return highest if lowest == highest else None


def psum():
    """Return the sum of 1, 2, ... over all devices of all processes, each of which has one of the numbers."""
    import jax
    import numpy as np
    from jax.sharding import NamedSharding, PartitionSpec

    count = jax.device_count()
    mesh = jax.make_mesh((count,), ("device",))
    place = PartitionSpec("device")
    numbers = np.arange(1, count + 1, dtype=np.int32)
    spread = jax.make_array_from_callback((count,), NamedSharding(mesh, place), lambda index: numbers[index])
    add = jax.shard_map(lambda one: jax.lax.psum(one, "device"), mesh=mesh, in_specs=place, out_specs=PartitionSpec())
    return int(jax.jit(add)(spread).addressable_data(0)[0])


def main():
    require = os.environ.get("REQUIRE_TPU", "0")
    if require not in ("0", "1"):
        print(f"error: REQUIRE_TPU: must be 0 or 1, is {require!r}", file=sys.stderr)
        return 2
    try:
        import jax
    except ImportError:
        print("error: jax is not installed here; on a TPU: pip install 'jax[tpu]'", file=sys.stderr)
        return 1
    meet()
    device, local, count = jax.local_devices()[0], jax.local_device_count(), jax.device_count()
    here = f"process {jax.process_index()} of {jax.process_count()}"
    print(f"{here}: {local} of {count} devices, {device.platform} ({device.device_kind})", flush=True)
    if require == "1" and device.platform != "tpu":
        print(f"error: REQUIRE_TPU: is 1, but JAX sees no TPU, only {device.platform}", file=sys.stderr)
        return 1
    found = {"matmul": (matmul(), SIZE), "psum": (psum(), count * (count + 1) // 2)}
    for name, (value, expected) in found.items():
        print(f"{here}: {name} {value}, expected {expected}", flush=True)
    return int(any(value != expected for value, expected in found.values()))


if __name__ == "__main__":
    sys.exit(main())
