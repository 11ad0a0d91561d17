# An image for jobs, on one of NVIDIA's CUDA images. `stacks images commands` prints how to build and push it, with the
# base that fits the stack's GPUs and their driver; PyTorch's and JAX's own wheels bring the rest of CUDA.
ARG BASE
FROM ${BASE}

# What `stacks images check` reads.
ARG CUDA
LABEL dev.accel.cuda="${CUDA}"

ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends python3 python3-venv \
    && rm -rf /var/lib/apt/lists/* \
    && python3 -m venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH

# First the packages, then the code: an edit of the code builds its last layer alone.
COPY requirements.txt /opt/requirements.txt
RUN pip install --requirement /opt/requirements.txt

# What a training program imports inside its job; the standard library is all that it needs.
COPY --from=accel_runtime . /opt/accel/accel_runtime
ENV PYTHONPATH=/opt/accel

WORKDIR /app
COPY . /app
