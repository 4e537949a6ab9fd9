"""An Ascend NPU in host memory: the real torch_npu on a stand-in of the ACL runtime.

Real: the device `npu`, every schema of `torch.ops.npu`, dispatch, autocast, transformers' branches
for NPUs. Emulated: the mathematics, by CPU kernels on the same bytes, within
`with HostNPU() as npu`. It counts what a device would do and refuses what one would refuse; it says
nothing about speed, the device's rounding, graph capture or its random numbers.

A process of its own is needed, started by `test.npu.conftest.on_npu`: torch_npu cannot be imported
without CANN, and `runtime.load()` must come before torch.
"""
