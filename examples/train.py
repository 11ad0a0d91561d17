"""Trains a small classifier on images of handwritten digits: a job that can be killed at any moment.

Settings are environment variables (a job file gives them under `env`); SETTINGS has defaults and limits.

    EPOCHS, BATCH_SIZE, LEARNING_RATE, SEED, HIDDEN (units of the hidden layer)
    LEARNING_RATES   instead of LEARNING_RATE: "0.1,0.03,...", of which each task of a sweep takes its own
    CHECKPOINT_DIR   folder, s3://bucket/prefix or gs://bucket/prefix to save in and resume from; the tasks of one job
                     each get a folder in it
    REQUIRE_GPU      1: fail where there is no GPU, instead of training slowly on the CPU
    STEP_SLEEP_MS    slows each step, to have the time to kill a run

A checkpoint is written after each epoch, and after the running step when SIGTERM (a cancelled job, a Spot
reclaim), SIGINT or the platform's own notice arrives. It holds the step, and the order of the images follows from SEED
and the epoch: a resumed run goes on with the next batch and ends with the loss of an unbroken one. Only EPOCHS may
change. Exit codes: 0 trained, 1 failed, 2 a bad setting, 130 stopped by SIGINT, 143 stopped otherwise.
"""

import contextlib
import os
import sys
import time
from pathlib import Path

import numpy as np

try:
    import accel_runtime as runtime  # `accel-jobs runtime` writes it: in the image, or on PYTHONPATH
except ImportError:  # in a checkout
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from jobs import runtime

    del sys.path[0]

DIGITS = Path(__file__).with_name("digits.csv.gz")  # a row for each image: its pixels from 0 to 16, and the digit
CLASSES, PIXELS, MOMENTUM = 10, 64, 0.9
TRAIN_IMAGES = 1437  # of 1797; the others measure the accuracy
SETTINGS = {  # type, default, lowest, highest
    "EPOCHS": (int, "20", 1, 10_000),
    "BATCH_SIZE": (int, "64", 1, TRAIN_IMAGES),
    "LEARNING_RATE": (float, "0.1", 1e-6, 10.0),
    "SEED": (int, "0", 0, 2**32 - 1),
    "HIDDEN": (int, "64", 1, 16_384),
    "REQUIRE_GPU": (int, "0", 0, 1),
    "STEP_SLEEP_MS": (int, "0", 0, 60_000),
}
FIXED = ("BATCH_SIZE", "LEARNING_RATE", "SEED", "HIDDEN")  # a checkpoint with others is of another run


class SettingError(Exception):
    pass


def number(name, text, kind, lowest, highest):
    with contextlib.suppress(ValueError):
        value = kind(text)
        if lowest <= value <= highest:  # nan never is
            return value
    what = "a whole number" if kind is int else "a number"
    raise SettingError(f"{name}: must be {what} from {lowest} to {highest}, is {text!r}")


def read_settings(env):
    def task(count):  # some platforms number tasks in a variable of their own; the job is told in which
        name = env.get("ACCEL_TASK_INDEX_FROM", "ACCEL_TASK_INDEX")
        return number(name, env.get(name, ""), int, 0, count - 1)

    texts = {name: env.get(name, default) for name, (_, default, *_) in SETTINGS.items()}
    if "LEARNING_RATES" in env:
        if "LEARNING_RATE" in env:
            raise SettingError("LEARNING_RATE: is set besides LEARNING_RATES; keep one")
        rates = env["LEARNING_RATES"].split(",")
        texts["LEARNING_RATE"] = rates[task(len(rates))].strip()
    settings = {name: number(name, texts[name], kind, *rest) for name, (kind, _, *rest) in SETTINGS.items()}
    folder = env.get("CHECKPOINT_DIR")
    if folder == "":
        raise SettingError("CHECKPOINT_DIR: is empty; name a folder or leave it out")
    return settings | {"CHECKPOINT_DIR": folder}


def save(checkpoints, arrays):
    def write(into):
        with into.open("arrays.npz") as file:
            np.savez(file, **arrays)

    checkpoints.save(arrays["step"], write)


def newest(checkpoints):
    """Return the place and arrays of the newest complete checkpoint, or None and nothing if there is none."""
    found = checkpoints.resume()
    if found is None:
        return None, {}
    with np.load(found.path("arrays.npz")) as file:
        return found.place, {name: file[name] for name in file.files}


def begin(settings, checkpoints):
    """Return the step to go on after, and the parameters with the optimiser's velocities: saved ones or new ones."""
    if checkpoints:
        place, arrays = newest(checkpoints)
        if place:
            step, epoch = int(arrays.pop("step")), arrays.pop("epoch")
            for name in FIXED:
                if (then := arrays.pop(name)) != settings[name]:
                    raise SettingError(f"{name}: is {settings[name]}, but was {then} for {place}")
            print(f"resumed from {place}: {epoch} epochs, {step} steps")
            return step, arrays
    random, hidden, arrays = np.random.default_rng(settings["SEED"]), settings["HIDDEN"], {}
    for layer, (inputs, outputs) in enumerate([(PIXELS, hidden), (hidden, CLASSES)]):
        weights = random.normal(0, (2 / inputs) ** 0.5, (inputs, outputs)).astype(np.float32)
        for name, start in (f"weights{layer}", weights), (f"bias{layer}", np.zeros(outputs, np.float32)):
            arrays |= {name: start, f"velocity-{name}": np.zeros_like(start)}
    return 0, arrays


def opened(folder):
    try:
        return runtime.Checkpoints(folder) if folder else None
    except (ValueError, ImportError) as fault:
        raise SettingError(f"CHECKPOINT_DIR: {fault}") from None


def train(settings):
    checkpoints = opened(settings["CHECKPOINT_DIR"])
    step, arrays = begin(settings, checkpoints)
    import jax  # takes seconds: only now, when the settings are known to be good
    from jax import numpy as jnp

    device = jax.devices()[0]
    print(f"device {device.platform} ({device.device_kind})")
    print("settings", *(f"{name}={value}" for name, value in settings.items()))
    if settings["REQUIRE_GPU"] and device.platform != "gpu":
        sys.exit(f"error: REQUIRE_GPU: is 1, but JAX sees no GPU, only {device.platform}")
    table = np.loadtxt(DIGITS, int, delimiter=",")
    images, labels = table[:, :PIXELS], table[:, PIXELS]
    mixed = np.random.default_rng(0).permutation(len(labels))  # the same split whatever the SEED
    images, labels = jnp.asarray(images[mixed] / 16, jnp.float32), jnp.asarray(labels[mixed])

    def scores(model, images):
        hidden = jax.nn.relu(images @ model["weights0"] + model["bias0"])
        return hidden @ model["weights1"] + model["bias1"]

    def loss(model, images, labels):
        chances = jax.nn.log_softmax(scores(model, images))
        return -jnp.take_along_axis(chances, labels[:, None], axis=1).mean()

    @jax.jit
    def update(arrays, batch):
        model = {name: arrays[name] for name in ("weights0", "bias0", "weights1", "bias1")}
        for name, slope in jax.grad(loss)(model, images[batch], labels[batch]).items():
            velocity = MOMENTUM * arrays[f"velocity-{name}"] - settings["LEARNING_RATE"] * slope
            arrays = arrays | {name: model[name] + velocity, f"velocity-{name}": velocity}
        return arrays

    @jax.jit
    def measure(arrays):
        right = scores(arrays, images[TRAIN_IMAGES:]).argmax(axis=1) == labels[TRAIN_IMAGES:]
        return loss(arrays, images[:TRAIN_IMAGES], labels[:TRAIN_IMAGES]), right.mean()

    size, epochs = settings["BATCH_SIZE"], settings["EPOCHS"]
    per_epoch, begun, stop = TRAIN_IMAGES // size, time.monotonic(), False
    steps = epochs * per_epoch
    while step < steps and not stop:
        epoch, batch = divmod(step, per_epoch)
        order = np.random.default_rng([settings["SEED"], epoch + 1]).permutation(TRAIN_IMAGES)
        arrays = update(arrays, order[batch * size : (batch + 1) * size])
        time.sleep(settings["STEP_SLEEP_MS"] / 1000)
        step += 1
        runtime.report(step=step, steps=steps)
        if step % per_epoch == 0:
            now, accuracy = map(float, measure(arrays))
            seconds = time.monotonic() - begun
            print(f"epoch {epoch + 1}/{epochs} loss {now:.4f} accuracy {accuracy:.4f} seconds {seconds:.2f}")
            runtime.report(loss=now, accuracy=accuracy)
        stop = runtime.should_stop()
        if checkpoints and (stop or step % per_epoch == 0):
            fixed = {name: settings[name] for name in FIXED}
            save(checkpoints, fixed | arrays | {"step": step, "epoch": step // per_epoch})
    if stop and step < steps:
        kept = f"saved in {checkpoints.place}" if checkpoints else "nothing saved, since CHECKPOINT_DIR is not set"
        print(f"stopped by {runtime.stop_reason()} after {step} steps: {kept}")
        runtime.finish()
    runtime.event("end", "trained")
    print("trained: loss {:.6f} accuracy {:.4f}".format(*map(float, measure(arrays))))
    runtime.finish(done=True)


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)  # into a pipe, lines would come late, or never after a kill
    runtime.watch()  # before what is slow: a container's first process ignores signals that it does not handle
    try:
        train(read_settings(os.environ))
    except (SettingError, OSError) as fault:
        print(f"error: {fault}", file=sys.stderr)
        sys.exit(2 if isinstance(fault, SettingError) else 1)
