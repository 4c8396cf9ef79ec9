// address.cl - address: where a buffer lies in the device's memory; read: dst = the number that lies there
//
// Shapes    address: buffer: any, addresses: [at + 1] or more; read: dst: [1]
// Launch    one work-item: global = local = (1, 1, 1)
// Macros    none
// Numerics  exact

__kernel void device_address(__global uchar *buffer, __global ulong *addresses, int at) {
  addresses[at] = (ulong)(size_t)buffer;
}

__kernel void device_address_read(ulong address, __global uint *dst) {
  dst[0] = *(__global const uint *)(size_t)address;
}
