// address.cl - address: where a buffer lies in the device's memory; read: dst = src, which may be such an address
//
// Shapes    address: buffer: any, addresses: [at + 1] or more; read: src, dst: [1]
// Launch    one work-item: global = local = (1, 1, 1)
// Macros    none
// Numerics  exact

__kernel void device_address(__global uchar *buffer, __global ulong *addresses, int at) {
  addresses[at] = (ulong)(size_t)buffer;
}

__kernel void device_address_read(__global const uint *src, __global uint *dst) { dst[0] = src[0]; }
