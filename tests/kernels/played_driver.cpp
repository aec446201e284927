// NVIDIA's driver, played: two devices whose memory is the host's, and whose work is done at once.
//
// It is compiled into a libcuda.so.1, which NVIDIA's own bindings load. Each call is written to a
// log with what it was given; a call that `play_failure` names returns an error instead. A module
// is the path of kernels compiled for the host (`host_program.cpp`), which are run; of any other
// module nothing is run.
#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <unistd.h>

namespace {

using Handle = void*;

constexpr int SUCCESS = 0;
constexpr int INVALID_VALUE = 1;
constexpr int INVALID_CONTEXT = 201;
constexpr int NOT_FOUND = 500;

std::mutex turn;
std::string written;
std::map<std::string, int> failures;
std::map<std::string, int> owned;
int retained[2];
int devices = 2;
uintptr_t last_handle = 1000;
std::atomic<int> work_milliseconds{0};
thread_local std::vector<Handle> contexts;

Handle context_of(int device) { return reinterpret_cast<Handle>(uintptr_t(70 + device)); }

// Write a call and what it was given to the log; return the error that it is to have.
int written_down(const char* name, const char* text) {
    std::lock_guard<std::mutex> lock(turn);
    written += std::string(name) + (*text ? " " : "") + text + "\n";
    auto found = failures.find(name);
    return found == failures.end() ? SUCCESS : found->second;
}

int told(const char* name) { return written_down(name, ""); }

template <typename... Arguments>
int told(const char* name, const char* format, Arguments... arguments) {
    char text[256];
    snprintf(text, sizeof text, format, arguments...);
    return written_down(name, text);
}

// As `told`, for calls that need a current context.
template <typename... Arguments>
int told_within(const char* name, Arguments... arguments) {
    int error = told(name, arguments...);
    return contexts.empty() ? INVALID_CONTEXT : error;
}

void own(const char* kind, int count) {
    std::lock_guard<std::mutex> lock(turn);
    owned[kind] += count;
}

int new_handle(const char* kind, Handle* handle) {
    own(kind, 1);
    std::lock_guard<std::mutex> lock(turn);
    *handle = reinterpret_cast<Handle>(++last_handle);
    return SUCCESS;
}

int let_go(const char* kind) {
    own(kind, -1);
    return SUCCESS;
}

using LaunchKernel = int (*)(const char*, unsigned, unsigned, const char*, size_t);

struct Function {
    LaunchKernel launch;
    std::string name;
};

// A texture, as `host_cuda.h` reads it; its handle is its address.
struct Texture {
    const void* data;
    size_t width;
    size_t rows;
    size_t texel_bytes;
};

// An array, which the driver describes by texels.
struct Array {
    size_t width;
    size_t rows;
    size_t texel_bytes;
    std::vector<char> data;
};

// The parts of the driver's structures that the device sets.
struct ArrayDescription {
    size_t width;
    size_t rows;
    int format;
    unsigned channels;
};

struct Resource {
    int kind;
    union {
        Array* array;
        struct {
            uint64_t address;
            int format;
            unsigned channels;
            size_t size;
        } linear;
    };
};

struct Copy {
    size_t from_x, from_y;
    int from_kind;
    const char* from;
    uint64_t from_device;
    Array* from_array;
    size_t from_pitch;
    size_t to_x, to_y;
    int to_kind;
    char* to;
    uint64_t to_device;
    Array* to_array;
    size_t to_pitch;
    size_t row_bytes;
    size_t rows;
};

constexpr int RESOURCE_IS_ARRAY = 0;
constexpr int MEMORY_OF_HOST = 1;
constexpr int MEMORY_OF_ARRAY = 3;

size_t texel_bytes(int format, unsigned channels) {
    // Unsigned integers of 8 bits are 1, of 32 bits 3.
    return (format == 1 ? 1 : format == 3 ? 4 : 0) * channels;
}

}  // namespace

#define PLAYED extern "C" __attribute__((visibility("default"))) int
#define FAIL_IF(error)            \
    do {                          \
        int found_error = error;  \
        if (found_error) {        \
            return found_error;   \
        }                         \
    } while (0)

// What the tests call.
PLAYED play_failure(const char* name, int error) {
    std::lock_guard<std::mutex> lock(turn);
    failures[name] = error;
    return 0;
}

extern "C" __attribute__((visibility("default"))) const char* play_log() {
    static std::string answer;
    std::lock_guard<std::mutex> lock(turn);
    answer.swap(written);
    written.clear();
    return answer.c_str();
}

PLAYED play_devices(int count) { return devices = count; }

// How long a stream works before it has been synchronized.
PLAYED play_milliseconds(int count) {
    work_milliseconds = count;
    return 0;
}

PLAYED play_owned(const char* kind) {
    std::lock_guard<std::mutex> lock(turn);
    return owned[kind];
}

PLAYED play_retained(int device) { return retained[device]; }

PLAYED play_contexts() { return int(contexts.size()); }

PLAYED play_context(int place) { return int(uintptr_t(contexts[place])) - 70; }

// As if nothing had been called, and nothing failed.
PLAYED play_anew() {
    std::lock_guard<std::mutex> lock(turn);
    written.clear();
    failures.clear();
    owned.clear();
    contexts.clear();
    retained[0] = retained[1] = 0;
    devices = 2;
    return 0;
}

// What the bindings call.
PLAYED cuGetErrorString(int error, const char** text) {
    static std::set<std::string> kept;
    *text = kept.insert("what " + std::to_string(error) + " means").first->c_str();
    return told("cuGetErrorString");
}

PLAYED cuInit(unsigned flags) { return told("cuInit", "%u", flags); }

PLAYED cuDriverGetVersion(int* version) {
    *version = 13010;
    return told("cuDriverGetVersion");
}

PLAYED cuDeviceGetCount(int* count) {
    *count = devices;
    return told("cuDeviceGetCount");
}

PLAYED cuDeviceGet(int* device, int number) {
    *device = number;
    return told("cuDeviceGet", "%d", number);
}

PLAYED cuDeviceGetName(char* name, int size, int device) {
    snprintf(name, size, "Played %d", device);
    return told("cuDeviceGetName");
}

PLAYED cuDeviceGetAttribute(int* value, int attribute, int device) {
    const std::map<int, int> values{
        {13, 1980000}, {16, 132},    {36, 3201000}, {39, 2048},
        {75, 9},       {76, device}, {81, 233472},  {82, 65536},
        {97, 232448},  {106, 32},    {111, 1024}};
    auto found = values.find(attribute);
    const bool is_known = found != values.end() && !(attribute == 36 && device == 1);
    *value = is_known ? found->second : 7;
    return is_known ? told("cuDeviceGetAttribute") : INVALID_VALUE;
}

PLAYED cuDeviceTotalMem_v2(size_t* bytes, int device) {
    *bytes = size_t(70 + device) << 30;
    return told("cuDeviceTotalMem");
}

PLAYED cuDevicePrimaryCtxRetain(Handle* context, int device) {
    FAIL_IF(told("cuDevicePrimaryCtxRetain", "%d", device));
    ++retained[device];
    *context = context_of(device);
    return SUCCESS;
}

PLAYED cuDevicePrimaryCtxRelease_v2(int device) {
    --retained[device];
    return told("cuDevicePrimaryCtxRelease", "%d", device);
}

PLAYED cuCtxPushCurrent_v2(Handle context) {
    FAIL_IF(told("cuCtxPushCurrent", "%d", int(uintptr_t(context) - 70)));
    contexts.push_back(context);
    return SUCCESS;
}

PLAYED cuCtxPopCurrent_v2(Handle* context) {
    if (contexts.empty()) {
        return INVALID_CONTEXT;
    }
    *context = contexts.back();
    contexts.pop_back();
    return told("cuCtxPopCurrent");
}

PLAYED cuMemGetInfo_v2(size_t* free, size_t* total) {
    *free = size_t(3) << 30;
    *total = size_t(4) << 30;
    return told_within("cuMemGetInfo");
}

PLAYED cuMemAlloc_v2(uint64_t* address, size_t size) {
    FAIL_IF(told_within("cuMemAlloc", "%zu", size));
    *address = reinterpret_cast<uint64_t>(aligned_alloc(256, (size + 255) / 256 * 256));
    own("memory", 1);
    return SUCCESS;
}

PLAYED cuMemFree_v2(uint64_t address) {
    FAIL_IF(told_within("cuMemFree"));
    free(reinterpret_cast<void*>(address));
    return let_go("memory");
}

PLAYED cuMemHostAlloc(void** address, size_t size, unsigned flags) {
    FAIL_IF(told_within("cuMemHostAlloc", "%zu %u", size, flags));
    if (size == 0) {
        return INVALID_VALUE;
    }
    *address = malloc(size);
    own("pinned", 1);
    return SUCCESS;
}

PLAYED cuMemFreeHost(void* address) {
    FAIL_IF(told_within("cuMemFreeHost"));
    free(address);
    return let_go("pinned");
}

PLAYED cuStreamCreate(Handle* stream, unsigned flags) {
    FAIL_IF(told_within("cuStreamCreate", "%u", flags));
    return new_handle("streams", stream);
}

PLAYED cuStreamDestroy_v2(Handle) {
    FAIL_IF(told_within("cuStreamDestroy"));
    return let_go("streams");
}

PLAYED cuStreamSynchronize(Handle) {
    FAIL_IF(told_within("cuStreamSynchronize"));
    usleep(1000 * work_milliseconds);
    return SUCCESS;
}

PLAYED cuEventCreate(Handle* event, unsigned flags) {
    FAIL_IF(told_within("cuEventCreate", "%u", flags));
    return new_handle("events", event);
}

PLAYED cuEventDestroy_v2(Handle) {
    FAIL_IF(told_within("cuEventDestroy"));
    return let_go("events");
}

PLAYED cuEventRecord(Handle, Handle) { return told_within("cuEventRecord"); }

PLAYED cuEventSynchronize(Handle) {
    FAIL_IF(told_within("cuEventSynchronize"));
    usleep(1000 * work_milliseconds);
    return SUCCESS;
}

PLAYED cuEventElapsedTime(float* milliseconds, Handle start, Handle end) {
    *milliseconds = float(uintptr_t(end)) - float(uintptr_t(start));
    return told_within("cuEventElapsedTime");
}

PLAYED cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t size, Handle) {
    FAIL_IF(told_within("cuMemcpyHtoDAsync", "%zu", size));
    memcpy(reinterpret_cast<void*>(to), from, size);
    return SUCCESS;
}

PLAYED cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t size, Handle) {
    FAIL_IF(told_within("cuMemcpyDtoHAsync", "%zu", size));
    memcpy(to, reinterpret_cast<void*>(from), size);
    return SUCCESS;
}

PLAYED cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t size, Handle) {
    FAIL_IF(told_within("cuMemcpyDtoDAsync", "%zu", size));
    memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), size);
    return SUCCESS;
}

PLAYED cuMemcpyDtoH_v2(void* to, uint64_t from, size_t size) {
    FAIL_IF(told_within("cuMemcpyDtoH", "%zu", size));
    memcpy(to, reinterpret_cast<void*>(from), size);
    return SUCCESS;
}

PLAYED cuMemsetD8Async(uint64_t to, unsigned char value, size_t size, Handle) {
    FAIL_IF(told_within("cuMemsetD8Async", "%d %zu", value, size));
    memset(reinterpret_cast<void*>(to), value, size);
    return SUCCESS;
}

PLAYED cuModuleLoadData(Handle* module, const void* image) {
    const char* path = static_cast<const char*>(image);
    FAIL_IF(told_within("cuModuleLoadData", "%.9s", path));
    Handle library = *path == '/' ? dlopen(path, RTLD_NOW) : nullptr;
    *module = new LaunchKernel(
        library == nullptr ? nullptr
                           : reinterpret_cast<LaunchKernel>(dlsym(library, "launch_kernel")));
    own("modules", 1);
    return SUCCESS;
}

PLAYED cuModuleUnload(Handle module) {
    FAIL_IF(told_within("cuModuleUnload"));
    delete static_cast<LaunchKernel*>(module);
    return let_go("modules");
}

PLAYED cuModuleGetFunction(Handle* function, Handle module, const char* name) {
    FAIL_IF(told_within("cuModuleGetFunction", "%s", name));
    // The driver frees functions with their module; a few that stay do no harm here.
    *function = new Function{*static_cast<LaunchKernel*>(module), name};
    return SUCCESS;
}

PLAYED cuFuncGetAttribute(int* value, int attribute, Handle) {
    *value = 40 + attribute;
    return told_within("cuFuncGetAttribute");
}

PLAYED cuFuncSetAttribute(Handle, int attribute, int value) {
    return told_within("cuFuncSetAttribute", "%d %d", attribute, value);
}

PLAYED cuLaunchKernel(
    Handle kernel, unsigned x, unsigned y, unsigned z, unsigned block_x, unsigned block_y,
    unsigned block_z, unsigned shared, Handle, void** parameters, void** further) {
    if (parameters != nullptr || further[0] != reinterpret_cast<void*>(1) ||
        further[2] != reinterpret_cast<void*>(2) || further[4] != nullptr) {
        return INVALID_VALUE;
    }
    const char* packed = static_cast<char*>(further[1]);
    size_t size = *static_cast<size_t*>(further[3]);
    auto function = static_cast<Function*>(kernel);
    std::string hexadecimal;
    for (size_t at = 0; at < size && function->launch == nullptr; ++at) {
        char text[3];
        snprintf(text, sizeof text, "%02x", static_cast<unsigned char>(packed[at]));
        hexadecimal += text;
    }
    FAIL_IF(told_within(
        "cuLaunchKernel", "%u,%u,%u %u,%u,%u %u %s", x, y, z, block_x, block_y, block_z, shared,
        hexadecimal.c_str()));
    if (function->launch == nullptr) {
        return SUCCESS;
    }
    // Kernels on the host keep the numbers of their threads in variables.
    static std::mutex one_kernel;
    std::lock_guard<std::mutex> lock(one_kernel);
    return function->launch(function->name.c_str(), x, block_x, packed, size) ? NOT_FOUND : SUCCESS;
}

PLAYED cuTexObjectCreate(uint64_t* texture, const Resource* resource, const void*, const void*) {
    FAIL_IF(told_within("cuTexObjectCreate", "%d", resource->kind));
    auto made = new Texture;
    if (resource->kind == RESOURCE_IS_ARRAY) {
        const Array& array = *resource->array;
        *made = {array.data.data(), array.width, array.rows, array.texel_bytes};
    } else {
        const auto& linear = resource->linear;
        size_t bytes = texel_bytes(linear.format, linear.channels);
        *made = {reinterpret_cast<void*>(linear.address), linear.size / bytes, 1, bytes};
    }
    own("textures", 1);
    *texture = reinterpret_cast<uint64_t>(made);
    return SUCCESS;
}

PLAYED cuTexObjectDestroy(uint64_t texture) {
    FAIL_IF(told_within("cuTexObjectDestroy"));
    delete reinterpret_cast<Texture*>(texture);
    return let_go("textures");
}

PLAYED cuArrayCreate_v2(Array** array, const ArrayDescription* told_shape) {
    size_t bytes = texel_bytes(told_shape->format, told_shape->channels);
    FAIL_IF(told_within("cuArrayCreate", "%zu %zu %zu", told_shape->width, told_shape->rows, bytes));
    *array = new Array{
        told_shape->width, told_shape->rows, bytes,
        std::vector<char>(told_shape->width * told_shape->rows * bytes)};
    own("arrays", 1);
    return SUCCESS;
}

PLAYED cuArrayDestroy(Array* array) {
    FAIL_IF(told_within("cuArrayDestroy"));
    delete array;
    return let_go("arrays");
}

PLAYED cuMemcpy2D_v2(const Copy* copy) {
    FAIL_IF(told_within("cuMemcpy2D", "%zu %zu", copy->row_bytes, copy->rows));
    if (copy->from_kind != MEMORY_OF_HOST || copy->to_kind != MEMORY_OF_ARRAY ||
        copy->from_pitch != copy->row_bytes ||
        copy->row_bytes * copy->rows != copy->to_array->data.size()) {
        return INVALID_VALUE;
    }
    memcpy(copy->to_array->data.data(), copy->from, copy->row_bytes * copy->rows);
    return SUCCESS;
}

// The bindings ask for functions by name; those that are not played are not there.
PLAYED cuGetProcAddress_v2(const char* name, void** function, int, uint64_t, int* status) {
    static Handle self = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    *function = dlsym(self, (std::string(name) + "_v2").c_str());
    if (*function == nullptr) {
        *function = dlsym(self, name);
    }
    if (status != nullptr) {
        *status = *function == nullptr;
    }
    return *function == nullptr ? NOT_FOUND : SUCCESS;
}
