// How fast a device follows random addresses: each thread reads a record, and what it reads
// says which record is next. Records are 32 bytes, whole or in two tables of 16.

using uint32 = unsigned int;

__device__ __forceinline__ uint32 mixed(uint32 number) {
    number ^= number >> 16;
    number *= 0x7FEB352Du;
    number ^= number >> 15;
    number *= 0x846CA68Bu;
    return number ^ number >> 16;
}

// Fill a table with words that depend on their place.
extern "C" __global__ void fill(uint32* table, unsigned long long words) {
    const unsigned long long step = static_cast<unsigned long long>(gridDim.x) * blockDim.x;
    for (unsigned long long word = static_cast<unsigned long long>(blockIdx.x) * blockDim.x +
                                   threadIdx.x;
         word < words; word += step) {
        table[word] = mixed(static_cast<uint32>(word));
    }
}

__device__ __forceinline__ uint32 folded(uint4 record) {
    return record.x ^ record.y ^ record.z ^ record.w;
}

extern "C" __global__ void __launch_bounds__(256)
    merged_32(const uint4* table, uint32 records, uint32 gathers, uint32* result) {
    uint32 address = mixed(blockIdx.x * blockDim.x + threadIdx.x);
    for (uint32 number = 0; number < gathers; ++number) {
        const uint32 record = __umulhi(address, records);
        address = mixed(folded(__ldg(table + 2 * record)) ^
                        folded(__ldg(table + 2 * record + 1)) ^ number);
    }
    if (address == 0) {
        *result = address;
    }
}

extern "C" __global__ void __launch_bounds__(256)
    split_16_and_16(const uint4* table, uint32 records, uint32 gathers, uint32* result) {
    uint32 address = mixed(blockIdx.x * blockDim.x + threadIdx.x);
    for (uint32 number = 0; number < gathers; ++number) {
        const uint32 record = __umulhi(address, records);
        address = mixed(folded(__ldg(table + record)) ^
                        folded(__ldg(table + records + record)) ^ number);
    }
    if (address == 0) {
        *result = address;
    }
}

extern "C" __global__ void __launch_bounds__(256)
    half_16(const uint4* table, uint32 records, uint32 gathers, uint32* result) {
    uint32 address = mixed(blockIdx.x * blockDim.x + threadIdx.x);
    for (uint32 number = 0; number < gathers; ++number) {
        const uint32 record = __umulhi(address, records);
        address = mixed(folded(__ldg(table + 2 * record)) ^ number);
    }
    if (address == 0) {
        *result = address;
    }
}
