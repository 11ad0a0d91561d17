/* Stands in for NVIDIA's libnvidia-ml.so.1, with the signatures of nvml.h that the project calls.
 *
 * What it answers is $FAKE_NVML when it starts, and fake_nvml(text) afterwards: `name=value` parted by `;`. Names are
 * init, gpus, hang and quiet, or <gpu>.<field>: 3.lost=1;3.xid=79. A field of -1 is "not supported".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OK = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, TIMEOUT = 10, LOST = 15, MISMATCH = 18 };

static const char *fields[] = {"use", "used", "total", "power", "temperature", "throttle", "mig", "parts", "ecc",
                               "retired", "pending", "failed", "action", "lost", "xid", "handle"};
enum { USE, USED, TOTAL, POWER, TEMPERATURE, THROTTLE, MIG, PARTS, ECC, RETIRED, PENDING, FAILED, ACTION, GONE, XID,
       HANDLE, FIELDS };
static const long long first[FIELDS] = {97, 40000, 81559, 650500, 61, 0, -1, 0, 0, -1, 0, 0, 0, 0, 0, 0};

typedef struct { long long told[FIELDS]; int number; } Gpu;
static Gpu gpus[16], parts[16];
static int count, init, hang, quiet;

void fake_nvml(const char *text) {
    char copy[4096], *rest = copy;
    snprintf(copy, sizeof copy, "%s", text);
    for (char *entry = strtok_r(rest, ";", &rest); entry; entry = strtok_r(rest, ";", &rest)) {
        char *value = strchr(entry, '=');
        if (!value) continue;
        *value++ = 0;
        char *field = strchr(entry, '.');
        if (!field) {
            int number = atoi(value);
            if (!strcmp(entry, "gpus")) count = number;
            if (!strcmp(entry, "init")) init = number;
            if (!strcmp(entry, "hang")) hang = number;
            if (!strcmp(entry, "quiet")) quiet = number;
            continue;
        }
        *field++ = 0;
        for (int i = 0; i < FIELDS; i++)
            if (!strcmp(fields[i], field)) gpus[atoi(entry)].told[i] = strtoll(value, 0, 0);
    }
}

int nvmlInit_v2(void) {
    count = init = hang = quiet = 0;
    for (int i = 0; i < 16; i++) {
        memcpy(gpus[i].told, first, sizeof first);
        gpus[i].number = i;
    }
    if (getenv("FAKE_NVML")) fake_nvml(getenv("FAKE_NVML"));
    if (hang) sleep(hang);
    return init;
}
int nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(int code) {
    return code == MISMATCH ? "Driver/library version mismatch" : code == 9 ? "Driver Not Loaded" : "Some Error";
}
int nvmlDeviceGetCount_v2(unsigned *told) { *told = count; return OK; }
int nvmlSystemGetDriverVersion(char *text, unsigned length) { snprintf(text, length, "580.95.05"); return OK; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {
    if (gpus[index].told[HANDLE]) return gpus[index].told[HANDLE];
    *handle = &gpus[index];
    return OK;
}
int nvmlDeviceGetName(void *gpu, char *text, unsigned length) {
    (void)gpu;
    snprintf(text, length, "NVIDIA H100 80GB HBM3");
    return OK;
}

static int tell(Gpu *gpu, int field, long long *told) {
    if (gpu->told[GONE]) return LOST;
    if (gpu->told[field] < 0) return NOT_SUPPORTED;
    *told = gpu->told[field];
    return OK;
}
#define UNSIGNED(function, field)                                                                                      \
    int function(void *gpu, unsigned *told) {                                                                          \
        long long value;                                                                                               \
        int code = tell(gpu, field, &value);                                                                           \
        if (code == OK) *told = value;                                                                                 \
        return code;                                                                                                   \
    }
UNSIGNED(nvmlDeviceGetPowerUsage, POWER)
UNSIGNED(nvmlDeviceGetRetiredPagesPendingStatus, RETIRED)
UNSIGNED(nvmlDeviceGetMaxMigDeviceCount, PARTS)

int nvmlDeviceGetTemperature(void *gpu, int sensor, unsigned *told) {
    long long value;
    int code = sensor == 0 ? tell(gpu, TEMPERATURE, &value) : 2;
    if (code == OK) *told = value;
    return code;
}
int nvmlDeviceGetUtilizationRates(void *gpu, unsigned told[2]) {
    long long value;
    int code = tell(gpu, USE, &value);
    if (code == OK) told[0] = value, told[1] = value / 2;
    return code;
}
int nvmlDeviceGetMemoryInfo(void *gpu, unsigned long long told[3]) {
    long long used, total;
    int code = tell(gpu, USED, &used);
    if (code == OK) code = tell(gpu, TOTAL, &total);
    if (code == OK) told[0] = total << 20, told[1] = (total - used) << 20, told[2] = used << 20;
    return code;
}
#ifndef OLD_DRIVER
int nvmlDeviceGetCurrentClocksEventReasons(void *gpu, unsigned long long *told) {
    return tell(gpu, THROTTLE, (long long *)told);
}
#else
int nvmlDeviceGetCurrentClocksThrottleReasons(void *gpu, unsigned long long *told) {
    return tell(gpu, THROTTLE, (long long *)told);
}
#endif
int nvmlDeviceGetMigMode(void *gpu, unsigned *now, unsigned *then) {
    long long value;
    int code = tell(gpu, MIG, &value);
    if (code == OK) *now = *then = value;
    return code;
}
int nvmlDeviceGetMigDeviceHandleByIndex(void *gpu, unsigned place, void **part) {
    Gpu *of = gpu;
    if (place % 2) return NOT_FOUND; /* those of others */
    parts[place] = *of;
    parts[place].told[USED] = 1000, parts[place].told[TOTAL] = 9856;
    *part = &parts[place];
    return OK;
}
int nvmlDeviceGetPciInfo_v3(void *gpu, char *told) {
    snprintf(told + 36, 32, "00000000:%02X:00.0", 0x10 + ((Gpu *)gpu)->number);
    return OK;
}
int nvmlDeviceGetTotalEccErrors(void *gpu, int kind, int counter, unsigned long long *told) {
    return kind == 1 && counter == 0 ? tell(gpu, ECC, (long long *)told) : 2;
}
#ifndef OLD_DRIVER
int nvmlDeviceGetRemappedRows(void *gpu, unsigned *a, unsigned *b, unsigned *pending, unsigned *failed) {
    long long one, two;
    int code = tell(gpu, PENDING, &one);
    if (code == OK) code = tell(gpu, FAILED, &two);
    if (code == OK) *a = *b = 0, *pending = one, *failed = two;
    return code;
}
#endif
int nvmlDeviceGetFieldValues(void *gpu, int length, char *told) {
    long long value;
    unsigned id, answer;
    memcpy(&id, told, 4);
    int code = length == 1 && id == 230 ? tell(gpu, ACTION, &value) : 2;
    memcpy(told + 28, &code, 4); /* after id, scope, two of 8 bytes, and the kind */
    answer = code == OK ? value : 0;
    memcpy(told + 32, &answer, 4);
    return OK;
}
int nvmlEventSetCreate(void **set) { static int one; *set = &one; return OK; }
int nvmlEventSetFree(void *set) { (void)set; return OK; }
int nvmlDeviceRegisterEvents(void *gpu, unsigned long long kinds, void *set) {
    (void)gpu, (void)set;
    return quiet || kinds != 8 ? NOT_SUPPORTED : OK;
}
typedef struct { void *gpu; unsigned long long kind, data; unsigned instance, compute; } Event;
int nvmlEventSetWait_v2(void *set, Event *event, unsigned ms) {
    (void)set, (void)ms;
    for (int i = 0; i < count; i++)
        if (gpus[i].told[XID] > 0) {
            event->gpu = &gpus[i], event->kind = 8, event->data = gpus[i].told[XID];
            gpus[i].told[XID] = 0;
            return OK;
        }
    return TIMEOUT;
}
