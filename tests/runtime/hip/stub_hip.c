// A stand-in for libamdhip64.so: device memory is host memory, and a launch calls back into the test.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int hipError_t;
typedef void (*launch_fn)(const void *code, uint64_t size, const char *symbol, const unsigned *shape, void **arguments);

enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NO_DEVICE = 100, INVALID_IMAGE = 200, NOT_FOUND = 500 };

static launch_fn on_launch;
static char failing[64], log_text[1 << 16];
static int stopped; // by a trap: the status of what follows
static int failure, device_count = 1, current_device, capture_mode;
static char architecture[32] = "gfx942:sramecc+:xnack-";

// What a test sets and reads.
void stub_on_launch(launch_fn callback) { on_launch = callback; }
void stub_devices(int count, const char *name) { device_count = count; snprintf(architecture, sizeof architecture, "%s", name); }
void stub_fail(const char *function, int status) { snprintf(failing, sizeof failing, "%s", function); failure = status; }
const char *stub_log(void) { return log_text; }
void stub_stop(int status) { stopped = status; }
void stub_clear(void) { stopped = 0; log_text[0] = failing[0] = 0; device_count = 1; on_launch = 0; stub_devices(1, "gfx942:sramecc+:xnack-"); }
int stub_device(void) { return current_device; }

static int begun(const char *name) {
    size_t used = strlen(log_text);
    if (used + strlen(name) + 2 < sizeof log_text) snprintf(log_text + used, sizeof log_text - used, "%s ", name);
    if (stopped && (strstr(name, "Launch") || strstr(name, "Synchronize") || strstr(name, "Memcpy"))) return stopped;
    return strcmp(name, failing) == 0 ? failure : SUCCESS;
}
#define BEGIN int status = begun(__func__); if (status) return status

const char *hipGetErrorName(hipError_t error) {
    switch (error) {
    case SUCCESS: return "hipSuccess";
    case INVALID_VALUE: return "hipErrorInvalidValue";
    case OUT_OF_MEMORY: return "hipErrorOutOfMemory";
    case NO_DEVICE: return "hipErrorNoDevice";
    case INVALID_IMAGE: return "hipErrorInvalidImage";
    case 209: return "hipErrorNoBinaryForGpu";
    case NOT_FOUND: return "hipErrorNotFound";
    case 700: return "hipErrorIllegalAddress";
    case 701: return "hipErrorLaunchOutOfResources";
    case 702: return "hipErrorLaunchTimeOut";
    case 719: return "hipErrorLaunchFailure";
    case 900: return "hipErrorStreamCaptureUnsupported";
    }
    return "hipErrorUnknown";
}

hipError_t hipInit(unsigned flags) { BEGIN; return flags ? INVALID_VALUE : SUCCESS; }
hipError_t hipGetDeviceCount(int *count) { BEGIN; *count = device_count; return device_count ? SUCCESS : NO_DEVICE; }
hipError_t hipDeviceGetName(char *name, int length, int device) {
    BEGIN;
    snprintf(name, (size_t)length, "AMD Instinct MI300X (stand-in)");
    (void)device;
    return SUCCESS;
}
hipError_t hipDeviceGetPCIBusId(char *id, int length, int device) {
    BEGIN;
    snprintf(id, (size_t)length, "0000:%02x:00.0", device);
    return SUCCESS;
}
hipError_t hipGetDevicePropertiesR0600(void *properties, int device) {
    BEGIN;
    if (device >= device_count) return INVALID_VALUE;
    memset(properties, 0, 1472);
    strcpy((char *)properties + 1160, architecture);
    return SUCCESS;
}
hipError_t hipSetDevice(int device) { BEGIN; current_device = device; return SUCCESS; }
hipError_t hipDeviceSynchronize(void) { BEGIN; return SUCCESS; }
hipError_t hipRuntimeGetVersion(int *version) { BEGIN; *version = 70253211; return SUCCESS; }

// All allocations, in a list.
struct block { char *start; size_t size; struct block *next; };
static struct block *blocks;

// The bytes from an address to the end of its allocation; 0 where there is none.
uint64_t stub_size(const void *address) {
    for (struct block *each = blocks; each; each = each->next) {
        ptrdiff_t offset = (const char *)address - each->start;
        if (offset >= 0 && (size_t)offset < each->size) return each->size - (size_t)offset;
    }
    return 0;
}
static void *allocated(size_t size) {
    struct block *made = malloc(sizeof *made);
    char *start = aligned_alloc(256, (size + 255) / 256 * 256);
    if (!made || !start) return 0;
    *made = (struct block){start, size, blocks};
    blocks = made;
    return start;
}
static hipError_t released(void *address) {
    for (struct block **each = &blocks; *each; each = &(*each)->next) {
        if ((*each)->start != address) continue;
        struct block *found = *each;
        *each = found->next;
        free(found->start);
        free(found);
        return SUCCESS;
    }
    return INVALID_VALUE;
}
hipError_t hipMalloc(void **address, size_t size) {
    BEGIN;
    *address = allocated(size);
    return *address ? SUCCESS : OUT_OF_MEMORY;
}
hipError_t hipFree(void *address) { BEGIN; return released(address); }
hipError_t hipMemcpyHtoD(void *target, const void *source, size_t size) { BEGIN; memcpy(target, source, size); return SUCCESS; }
hipError_t hipMemcpyDtoH(void *target, const void *source, size_t size) { BEGIN; memcpy(target, source, size); return SUCCESS; }
hipError_t hipMemsetD8(void *target, unsigned char byte, size_t size) { BEGIN; memset(target, byte, size); return SUCCESS; }
hipError_t hipMemsetD8Async(void *target, unsigned char byte, size_t size, void *stream) {
    BEGIN;
    (void)stream;
    memset(target, byte, size);
    return SUCCESS;
}
hipError_t hipHostMalloc(void **address, size_t size, unsigned flags) {
    BEGIN;
    (void)flags;
    *address = allocated(size);
    return *address ? SUCCESS : OUT_OF_MEMORY;
}
hipError_t hipHostGetDevicePointer(void **device, void *host, unsigned flags) {
    BEGIN;
    *device = host;
    return flags ? INVALID_VALUE : SUCCESS;
}

hipError_t hipEventCreate(void **event) { BEGIN; *event = malloc(1); return SUCCESS; }
hipError_t hipEventRecord(void *event, void *stream) { BEGIN; (void)stream; return event ? SUCCESS : INVALID_VALUE; }
hipError_t hipEventSynchronize(void *event) { BEGIN; return event ? SUCCESS : INVALID_VALUE; }
hipError_t hipEventElapsedTime(float *milliseconds, void *begin, void *end) {
    BEGIN;
    *milliseconds = 0.25f;
    return begin && end ? SUCCESS : INVALID_VALUE;
}
hipError_t hipEventDestroy(void *event) { BEGIN; free(event); return SUCCESS; }

struct module { uint64_t size; char code[]; };
struct function { const struct module *module; char symbol[256]; };

hipError_t hipThreadExchangeStreamCaptureMode(int *mode) {
    BEGIN;
    int before = capture_mode;
    capture_mode = *mode;
    *mode = before;
    return SUCCESS;
}
hipError_t hipModuleLoadData(struct module **module, const void *image) {
    BEGIN;
    if (memcmp(image, "\177ELF", 4)) return INVALID_IMAGE;
    uint64_t sections; // their table ends the file
    uint16_t size, count;
    memcpy(&sections, (const char *)image + 0x28, 8);
    memcpy(&size, (const char *)image + 0x3a, 2);
    memcpy(&count, (const char *)image + 0x3c, 2);
    uint64_t whole = sections + (uint64_t)size * count;
    *module = malloc(sizeof **module + whole);
    (*module)->size = whole;
    memcpy((*module)->code, image, whole);
    return capture_mode == 2 ? SUCCESS : 900;
}
hipError_t hipModuleGetFunction(struct function **function, const struct module *module, const char *symbol) {
    BEGIN;
    if (strstr(symbol, "missing")) return NOT_FOUND;
    *function = malloc(sizeof **function);
    (*function)->module = module;
    snprintf((*function)->symbol, sizeof (*function)->symbol, "%s", symbol);
    return SUCCESS;
}
hipError_t hipModuleLaunchKernel(struct function *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                 unsigned bz, unsigned shared, void *stream, void **arguments, void **extra) {
    BEGIN;
    unsigned shape[7] = {gx, gy, gz, bx, by, bz, shared};
    if (extra || stream) return INVALID_VALUE;
    if (on_launch) on_launch(function->module->code, function->module->size, function->symbol, shape, arguments);
    return SUCCESS;
}
