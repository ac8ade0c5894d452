// NVML: the memory of devices; clocks and power are made up, reasons for lowered clocks come from RNA_SIM_SLOWED.
#include <string.h>

#include "sim.h"

extern "C" {
#include <nvml.h>
}

namespace {

bool ready;
nvmlDevice_t handle(int device) { return (nvmlDevice_t)(uintptr_t)(device + 1); }
int number(nvmlDevice_t d) { return (int)(uintptr_t)d - 1; }

}  // namespace

#define NVML(name)                                         \
	std::lock_guard<std::recursive_mutex> held(sim::lock); \
	if (int bad = simEnter(#name)) return bad;             \
	if (!ready) return NVML_ERROR_UNINITIALIZED

extern "C" {

nvmlReturn_t nvmlInit_v2(void) {
	ready = true;
	NVML(nvmlInit_v2);
	return NVML_SUCCESS;
}
const char *nvmlErrorString(nvmlReturn_t code) { return code == NVML_ERROR_NOT_FOUND ? "Not Found" : "Unknown Error"; }

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device) {
	NVML(nvmlDeviceGetHandleByUUID);
	for (int d = 0; d < sim::deviceCount(); d++)
		if (sim::uuidText(sim::physical(d)) == uuid) {
			*device = handle(d);
			return NVML_SUCCESS;
		}
	return NVML_ERROR_NOT_FOUND;
}
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *m) {
	NVML(nvmlDeviceGetMemoryInfo);
	m->total = sim::deviceBytes();
	m->used = sim::used(number(device));
	m->free = m->total - m->used;
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t, nvmlClockType_t type, unsigned *mhz) {
	NVML(nvmlDeviceGetClockInfo);
	*mhz = type == NVML_CLOCK_MEM ? 1000 : 1500;
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t, unsigned *milliwatts) {
	NVML(nvmlDeviceGetPowerUsage);
	*milliwatts = 65000;
	return NVML_SUCCESS;
}
// Parts of GPUs have no power limit.
nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t, unsigned *milliwatts) {
	NVML(nvmlDeviceGetEnforcedPowerLimit);
	if (sim::setting("RNA_SIM_MIG", 0)) return NVML_ERROR_NOT_SUPPORTED;
	*milliwatts = 100000;
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t, nvmlTemperatureSensors_t, unsigned *celsius) {
	NVML(nvmlDeviceGetTemperature);
	*celsius = 41;
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t, unsigned long long *reasons) {
	NVML(nvmlDeviceGetCurrentClocksThrottleReasons);
	*reasons = sim::setting("RNA_SIM_SLOWED", 0);
	return NVML_SUCCESS;
}

}  // extern "C"
