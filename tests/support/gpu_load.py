"""A program for a real GPU, by the driver alone: `busy SECONDS MIB` keeps it at work, `fault` writes where it may not.

No toolkit is needed: the driver compiles the PTX. Source: https://docs.nvidia.com/cuda/cuda-driver-api/ and
https://docs.nvidia.com/cuda/parallel-thread-execution/
"""

import ctypes
import sys

PTX = b"""
.version 6.3
.target sm_75
.address_size 64
.visible .entry busy(.param .u64 nanoseconds)
{
    .reg .u64 %now, %end, %long;
    .reg .pred %more;
    ld.param.u64 %long, [nanoseconds];
    mov.u64 %end, %globaltimer;
    add.u64 %end, %end, %long;
again:
    mov.u64 %now, %globaltimer;
    setp.lt.u64 %more, %now, %end;
    @%more bra again;
    ret;
}
.visible .entry fault()
{
    .reg .u64 %nowhere;
    .reg .u32 %value;
    mov.u64 %nowhere, 16;
    mov.u32 %value, 1;
    st.global.u32 [%nowhere], %value;
    ret;
}
"""
KERNEL_S = 0.5


def main(what: str, seconds: str = "0", mib: str = "0") -> int:
    """Returns CUDA's error code; 0 where nothing went wrong."""
    cuda = ctypes.CDLL("libcuda.so.1")

    def call(name: str, *arguments: object) -> None:
        if code := getattr(cuda, name)(*arguments):
            raise SystemExit(f"{name}: error {code}")

    context, module, kernel, memory = (ctypes.c_void_p() for _ in range(4))
    call("cuInit", 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuCtxSetCurrent", context)
    call("cuModuleLoadData", ctypes.byref(module), PTX)
    call("cuModuleGetFunction", ctypes.byref(kernel), module, what.encode())
    if int(mib):
        call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(int(mib) << 20))
    long = ctypes.c_uint64(int(KERNEL_S * 1e9))
    arguments = (ctypes.c_void_p * 1)(ctypes.addressof(long))
    print("ready", flush=True)
    for _ in range(max(1, int(float(seconds) / KERNEL_S))):
        call("cuLaunchKernel", kernel, 1, 1, 1, 1, 1, 1, 0, None, arguments if what == "busy" else None, None)
        if code := cuda.cuCtxSynchronize():
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) and 1)
