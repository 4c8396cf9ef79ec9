// address.cl - where buffers lie in the device's memory, and whether a kernel reads there
//
// Shapes    addresses: [at + 1] or more; dst: [1]
// Launch    one work-item: global = local = (1, 1, 1)
// Numerics  exact

// A null buffer would be 0.
__kernel void address_note(__global uchar *buffer, __global ulong *addresses, int at) {
  addresses[at] = (ulong)(size_t)buffer;
}

__kernel void address_read(ulong address, __global uint *dst) {
  dst[0] = *(__global const uint *)(size_t)address;
}
