"""Limits of mobile devices, as plain data; docs/devices.md names the sources of the numbers."""

from __future__ import annotations

from dataclasses import dataclass, fields

KIB, MIB, GIB = 2**10, 2**20, 2**30

_ATOMICS = (
    "cl_khr_global_int32_base_atomics cl_khr_global_int32_extended_atomics "
    "cl_khr_local_int32_base_atomics cl_khr_local_int32_extended_atomics "
    "cl_khr_byte_addressable_store"
)


@dataclass(frozen=True)
class Profile:
    """What a device answers and enforces; each field is the variable LIMITS_<its name>."""

    name: str
    vendor: str
    platform: str
    version: str  # of the device
    c_version: str
    driver: str
    extensions: str  # it lists those of them that the real device has, too
    compute_units: int
    work_group: int  # work-items
    work_items: int  # of a work-group, along each axis
    kernel_work_groups: str  # sizes that a hash of a kernel's name draws its own limit from
    lanes: int  # work-items in lockstep
    vector_float: int  # floats of the vectors it computes with
    object: int  # bytes of the largest buffer
    global_: int  # bytes of all of them
    local: int  # bytes of a work-group
    local_type: int  # 1: memory of its own, 2: it lies in global memory
    base_align_bits: int
    parameters: int  # bytes of a kernel's arguments; answered, not enforced
    constant: int  # bytes of a constant buffer; answered, not enforced
    images: int  # 0 or 1
    image_width: int = 0  # texels
    image_height: int = 0
    image_texels: int = 0  # of an image over a buffer
    sub_buffer_images: int = 1  # 0: the buffer of an image is no sub-buffer
    unified_memory: int = 1
    unflushed: int = 2**63  # launches that its queue keeps without a flush
    emulated: str = ""  # extensions that the layer has itself, whatever the real device has

    def work_group_of(self, kernel: str) -> int:
        """Return the most work-items that a work-group of a kernel can have, by its name."""
        digest = 2166136261  # FNV-1a
        for byte in kernel.encode():
            digest = (digest ^ byte) * 16777619 % 2**32
        sizes = self.kernel_work_groups.split()
        return int(sizes[(digest >> 8) % len(sizes)])

    def environment(self) -> dict[str, str]:
        """Return the variables that the layer reads."""
        return {
            f"LIMITS_{field.name.rstrip('_').upper()}": str(getattr(self, field.name))
            for field in fields(self)
        }


PROFILES = {
    "adreno_660": Profile(
        name="QUALCOMM Adreno(TM) 660",
        vendor="QUALCOMM",
        platform="QUALCOMM Snapdragon(TM)",
        version="OpenCL 2.0 Adreno(TM) 660",
        c_version="OpenCL C 2.0 Adreno(TM) 660",
        driver="OpenCL 2.0 QUALCOMM build: emulated limits",
        extensions=f"{_ATOMICS} cl_khr_3d_image_writes cl_khr_fp16 cl_khr_image2d_from_buffer",
        compute_units=3,
        work_group=1024,
        work_items=1024,
        kernel_work_groups="1024 1024 512 384 256 128",
        lanes=64,
        vector_float=1,
        object=1 * GIB,
        global_=4 * GIB,
        local=32 * KIB,
        local_type=1,
        base_align_bits=1024,
        parameters=1024,
        constant=64 * KIB,
        images=1,
        image_width=16384,
        image_height=16384,
        image_texels=2**27,
        unflushed=16,
        emulated="cl_qcom_ext_host_ptr cl_qcom_android_ahardwarebuffer_host_ptr cl_khr_gl_sharing",
    ),
    "mali_g78": Profile(
        name="Mali-G78 r0p1",
        vendor="ARM",
        platform="ARM Platform",
        version="OpenCL 2.1 v1.r26p0-01eac0.emulated",
        c_version="OpenCL C 2.0 v1.r26p0-01eac0.emulated",
        driver="2.1",
        extensions=f"{_ATOMICS} cl_khr_3d_image_writes cl_khr_int64_base_atomics "
        "cl_khr_int64_extended_atomics cl_khr_fp16 cl_khr_image2d_from_buffer cl_khr_depth_images",
        compute_units=14,
        work_group=512,
        work_items=512,
        kernel_work_groups="512 512 256 128 64",
        lanes=16,
        vector_float=1,
        object=1 * GIB,
        global_=3 * GIB,
        local=32 * KIB,
        local_type=2,
        base_align_bits=1024,
        parameters=1024,
        constant=64 * KIB,
        images=1,
        image_width=65536,
        image_height=65536,
        image_texels=65536,
        unflushed=24,
        emulated="cl_arm_import_memory cl_arm_import_memory_android_hardware_buffer "
        "cl_khr_gl_sharing",
    ),
    "powervr_bxm": Profile(
        name="PowerVR B-Series BXM-8-256",
        vendor="Imagination Technologies",
        platform="PowerVR",
        version="OpenCL 3.0 ",
        c_version="OpenCL C 1.2 ",
        driver="1.15@6133110",
        extensions=f"{_ATOMICS} cl_khr_fp16 cl_khr_image2d_from_buffer",
        compute_units=1,
        work_group=512,
        work_items=512,
        kernel_work_groups="512 512 256 128 64",
        lanes=32,
        vector_float=1,
        object=1 * GIB,
        global_=4 * GIB,
        local=16 * KIB,
        local_type=1,
        base_align_bits=1024,
        parameters=1024,
        constant=64 * KIB,
        images=1,
        image_width=8192,
        image_height=8192,
        image_texels=8192,
        sub_buffer_images=0,
        unflushed=1,
    ),
    "videocore": Profile(
        name="VideoCore IV GPU",
        vendor="Broadcom",
        platform="OpenCL for the Raspberry Pi VideoCore IV GPU",
        version="OpenCL 1.2 VC4CL 0.4",
        c_version="OpenCL C 1.2 ",
        driver="0.4",
        extensions=_ATOMICS,
        compute_units=1,
        work_group=12,
        work_items=12,
        kernel_work_groups="12 12 8 4 1",
        lanes=1,
        vector_float=16,
        object=64 * MIB,
        global_=256 * MIB,
        local=16 * KIB,
        local_type=2,
        base_align_bits=4096,
        parameters=256,
        constant=64 * KIB,
        images=0,
        unflushed=16,
    ),
}
