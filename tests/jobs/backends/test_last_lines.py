"""What ended a program, from its last lines as frameworks, drivers and launchers write them, on every platform."""

import pytest

from jobs.backends.diagnosis import gke, google_batch, local, vertex
from jobs.backends.diagnosis.aws_batch.facts import AwsFacts
from jobs.backends.diagnosis.engine import Facts
from jobs.backends.diagnosis.outcome import FailedAttempt, program_failure
from jobs.backends.diagnosis.vm.facts import VmFacts

PLATFORMS: list[type[Facts]] = [
    AwsFacts, gke.GkeFacts, google_batch.BatchFacts, vertex.VertexFacts, VmFacts, local.LocalFacts,
]  # fmt: skip
TRACEBACK = 'Traceback (most recent call last):\n  File "t.py", line 3, in <module>\n'
ELASTIC = f"{TRACEBACK}torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"


def cause(text: str, code: int = 1, gpus: int = 1) -> str:
    """Return the cause, which is the same on each platform."""
    ended = FailedAttempt(code, tuple(text.splitlines()), gpus)
    told = {explained and explained.cause for each in PLATFORMS for explained in [program_failure(each, ended)]}
    (one,) = told
    assert one is not None
    return one


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # https://github.com/kijai/ComfyUI-WanVideoWrapper/issues/565
        (
            f"{TRACEBACK}RuntimeError: CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported",
            "cuda-out-of-memory",
        ),
        ("RuntimeError: cuda runtime error (2) : out of memory at /pytorch/aten/src/THC/x.cu:1", "cuda-out-of-memory"),
        # https://github.com/tensorflow/models/issues/5527
        (
            "ResourceExhaustedError (see above for traceback): OOM when allocating tensor with shape[64,2016,9,9] and "
            "type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc",
            "cuda-out-of-memory",
        ),
        # https://github.com/santi-pdp/segan/issues/42
        ("ResourceExhaustedError: OOM when allocating tensor with shape[100,4096,32]", "cuda-out-of-memory"),
        ("ResourceExhaustedError: OOM when allocating tensor on /device:CPU:0 by allocator cpu", "out-of-memory"),
        ("XlaRuntimeError: RESOURCE_EXHAUSTED: Failed to allocate request for 2.00GiB (1B) on device ordinal 0",
         "cuda-out-of-memory"),
        ("cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 8,000 bytes", "cuda-out-of-memory"),
        ("ggml: allocating 4096.00 MiB on device 0: cudaMalloc failed: out of memory", "cuda-out-of-memory"),
        ("ValueError: Free memory on device (3.1/79.2 GiB) on startup is less than desired GPU memory utilization",
         "cuda-out-of-memory"),
        ("NCCL WARN Cuda failure 2 'out of memory'", "cuda-out-of-memory"),
        ("RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED", "cuda-out-of-memory"),
        # https://github.com/mxfold/mxfold2/issues/20
        (
            "RuntimeError: [enforce fail at alloc_cpu.cpp:75] err == 0. DefaultCPUAllocator: can't allocate memory: "
            "you tried to allocate 132426121216 bytes. Error code 12 (Cannot allocate memory)",
            "out-of-memory",
        ),
        (f"{TRACEBACK}MemoryError", "out-of-memory"),
        ("terminate called after throwing an instance of 'std::bad_alloc'", "out-of-memory"),
        ("ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.", "out-of-memory"),
        ("Memory cgroup out of memory: Killed process 4411 (python) total-vm:64GB", "out-of-memory"),
        ("numpy.core._exceptions._ArrayMemoryError: Unable to allocate 7.63 TiB for an array", "out-of-memory"),
        # https://github.com/NVIDIA/nccl/issues/525, https://github.com/pytorch/ci-infra/pull/490
        ("[3] include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device", "shared-memory"),
        (
            "[0] misc/shmutils.cc:88 NCCL WARN Error: failed to extend /dev/shm/nccl-WU88OE to 9637892 bytes, error: "
            "No space left on device (28)",
            "shared-memory",
        ),
        ("Bus error (core dumped)", "shared-memory"),
        (f"{ELASTIC}  exitcode  : -7 (pid: 1)\n  traceback : Signal 7 (SIGBUS) received by PID 1", "shared-memory"),
        # https://github.com/datalab-to/marker/issues/181
        (
            "RuntimeError: unable to open shared memory object </torch_1> in read-write mode: Too many open files (24)",
            "exit-code",
        ),
        ("psycopg2.errors.OutOfMemory: out of shared memory", "exit-code"),
        # https://github.com/DataBiosphere/dsub/issues/215
        (
            f"{TRACEBACK}AssertionError: \nThe NVIDIA driver on your system is too old (found version 10020).",
            "gpu-not-visible",
        ),
        # https://github.com/ashawkey/stable-dreamfusion/issues/64
        ("RuntimeError: CUDA error: no kernel image is available for execution on the device", "gpu-not-visible"),
        ("AssertionError: Torch not compiled with CUDA enabled", "gpu-not-visible"),
        # https://github.com/fauxpilot/fauxpilot/issues/19
        ("what():  [FT][ERROR] CUDA runtime error: the provided PTX was compiled with an unsupported toolchain.",
         "gpu-not-visible"),
        ("RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment", "gpu-not-visible"),
        ("RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable", "gpu-not-visible"),
        ("Failed to initialize NVML: Driver/library version mismatch", "gpu-not-visible"),
        ("Error 804: forward compatibility was attempted on non supported HW", "gpu-not-visible"),
        # https://github.com/tloen/alpaca-lora/issues/123, https://github.com/nagadit/DeepFaceLab_Linux/issues/89,
        # https://github.com/NVIDIA/nvidia-docker/issues/1553
        ("RuntimeError: CUDA error: uncorrectable ECC error encountered", "gpu-failed"),
        ("failed call to cuDevicePrimaryCtxRetain: CUDA_ERROR_ECC_UNCORRECTABLE", "gpu-failed"),
        ("NVRM: Xid (PCI:0000:09:00): 79, pid=0, GPU has fallen off the bus.", "gpu-failed"),
        ("NVRM: Xid (PCI:0000:09:00): 13, pid=7, Graphics Exception", "exit-code"),
        # https://github.com/pytorch/pytorch/issues/8976
        (f"{TRACEBACK}RuntimeError: DataLoader worker (pid 4161) is killed by signal: Killed.", "killed"),
        # https://github.com/lzhxmu/CPPO/issues/6
        (f"{ELASTIC}  exitcode  : -9 (pid: 14750)\n  traceback : Signal 9 (SIGKILL) received by PID 1", "killed"),
        # https://github.com/resistzzz/Prompt4NR/issues/3, https://github.com/bmaltais/kohya_ss/issues/1065
        ("torch.multiprocessing.spawn.ProcessExitedException: process 0 terminated with signal SIGKILL", "killed"),
        ("subprocess.CalledProcessError: Command '['t']' died with <Signals.SIGKILL: 9>.", "killed"),
        # https://github.com/CASIA-LMC-Lab/AnomalyGPT/issues/43
        ("[ERROR] [launch.py:320:sigkill_handler] ['python', 't.py'] exits with return code = -9", "killed"),
        # https://github.com/XPixelGroup/BasicSR/issues/737
        (
            "[rank1]:[E626 06:24:44.903881913 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation "
            "timeout: WorkNCCL(SeqNum=808, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600020 milliseconds\n"
            f"{ELASTIC}",
            "collective-timeout",
        ),
        # https://github.com/bytedance/HLLM/issues/20, https://github.com/pytorch/pytorch/issues/82091
        (f"{TRACEBACK}torch.distributed.DistBackendError: [3] is setting up NCCL communicator and retrieving "
         "ncclUniqueId from [0] via c10d key-value store by key '0', but store->get('0') got error: Socket Timeout",
         "collective-timeout"),
        ("store->get('0') got error: Timeout waiting for key: default_pg/0/0 after 1800000 ms", "collective-timeout"),
        ("RuntimeError: [gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation",
         "collective-timeout"),
        ("XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Barrier_id: PjRT_Client_Connect",
         "collective-timeout"),
        ("torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients.", "collective-timeout"),
        # https://github.com/ToTheBeginning/PuLID/issues/97, https://github.com/huggingface/autotrain-advanced/issues/365
        ("huggingface_hub.errors.GatedRepoError: 401 Client Error. (Request ID: 1)", "model-forbidden"),
        (
            "requests.exceptions.HTTPError: 401 Client Error: Unauthorized for url: "
            "https://huggingface.co/meta-llama/Llama-2-7b-hf/resolve/main/config.json",
            "model-forbidden",
        ),
        (f"{TRACEBACK}RepositoryNotFoundError: 401 Client Error.\n\nRepository Not Found for url: "
         "https://huggingface.co/api/models/x.", "model-forbidden"),
        # https://github.com/huggingface/datasets/issues/6488, https://github.com/huggingface/datasets/issues/7871
        ("HTTP status client error (429 Too Many Requests), domain: https://cas-server.xethub.hf.co/v1/x",
         "hub-rate-limit"),
        (
            "HfHubHTTPError: 429 Client Error: Too Many Requests for url: https://huggingface.co/api/datasets/a/b",
            "hub-rate-limit",
        ),
        (f"{TRACEBACK}ModuleNotFoundError: No module named 'flash_attn'", "import-failed"),
        ("/lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.34' not found (required by /app/train)", "import-failed"),
        ("Could not load library libcudnn_ops_infer.so.8. Error: libcudnn_ops_infer.so.8", "import-failed"),
        ("ERROR: No matching distribution found for torch==9.9", "requirements-failed"),
        ("/usr/bin/python3: No module named trainer", "import-failed"),
        # https://github.com/THU-MIG/yolov10/issues/306
        (f"{TRACEBACK}ImportError: /x/libtorch_cuda.so: undefined symbol: ncclCommRegister", "import-failed"),
        # https://github.com/pytorch/pytorch/issues/2985
        (f"{TRACEBACK}ImportError: libcuda.so.1: cannot open shared object file", "gpu-not-visible"),
        ("Disk quota exceeded", "disk-full"),
        # https://github.com/aws-observability/aws-otel-collector/issues/784
        ("standard_init_linux.go:228: exec user process caused: exec format error", "image-platform"),
        ("exec /usr/local/bin/python: exec format error", "image-platform"),
    ],
)  # fmt: skip
def test_what_programs_say(text: str, expected: str) -> None:
    assert cause(text) == expected


def test_what_other_processes_say_after_one_has_failed_is_not_the_cause() -> None:
    """They wait for it in vain, or the launcher ends them."""
    waits = "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=8)\n"
    ends = f"{ELASTIC}  exitcode  : -9 (pid: 1)\n"
    assert cause(f"{TRACEBACK}KeyError: 'loss'\n{waits}{ends}") == "exit-code"
    assert cause(f"{TRACEBACK}torch.OutOfMemoryError: CUDA out of memory.\n{waits}{ends}") == "cuda-out-of-memory"
    noise = "step\n" * 60
    assert cause(f"No CUDA GPUs are available\n{noise}{TRACEBACK}CalledProcessError: 'ffmpeg' failed") == "exit-code"
    assert cause(f"NCCL WARN Call to posix_fallocate failed : No space left on device\n{ends}") == "shared-memory"


def test_a_program_without_a_gpu() -> None:
    loads = "RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False."
    assert (cause(loads, gpus=0), cause(loads, gpus=1)) == ("gpu-not-requested", "gpu-not-visible")
    assert cause("ResourceExhaustedError: OOM when allocating tensor with shape[100]", gpus=0) == "out-of-memory"


def test_advice_is_of_the_case() -> None:
    def step(text: str) -> tuple[str, str]:
        told = program_failure(AwsFacts, FailedAttempt(1, (text,), 1))  # type: ignore[arg-type]
        assert told
        return told.reason, told.next_step

    built, driver = step("AssertionError: Torch not compiled with CUDA enabled"), step("No CUDA GPUs are available")
    assert "without CUDA" in built[0] and "install a build" in built[1] and "AMI" in driver[1]
    assert "was killed" not in step("MemoryError")[0]
