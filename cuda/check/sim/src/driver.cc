// Initialisation, devices, contexts.
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <vector>

#include "sim.h"

namespace sim {

thread_local CUcontext current;
std::set<CUcontext> contexts;

namespace {

thread_local std::vector<CUcontext> stack;  // below current
bool ready;                                 // cuInit was called

struct Primary {
	CUcontext context;
	int users;
	unsigned flags;
	int made;  // number of times that the context was created
};
std::map<int, Primary> primaries;

bool bad(CUdevice d) { return d < 0 || d >= deviceCount(); }

CUcontext make(int device, unsigned flags) {
	CUcontext c = new CUctx_st();
	c->device = device;
	c->flags = flags;
	c->null = CUstream_st{c, true, 0, 0, {}, {}};
	contexts.insert(c);
	return c;
}

// destroy ends a context. Its remaining objects count as never released, unless the context was lost: then nobody could
// release them.
void destroy(CUcontext c) {
	drainAll(c);
	bool lost = simDead() != 0;
	releaseAll(c, lost);
	for (CUstream s : c->streams) {
		delete s;
		if (lost) simLive("streams", -1);
	}
	for (auto it = events.begin(); it != events.end();) {
		CUevent e = *it++;
		if (e->context != c) continue;
		events.erase(e);
		delete e;
		if (lost) simLive("events", -1);
	}
	dropModules(c, lost);
	dropGraphs(c, lost);
	for (auto &[kind, n] : c->handles)
		if (lost) simLive(kind.c_str(), -n);
	contexts.erase(c);
	if (current == c) current = nullptr;
	delete c;
}

}  // namespace
}  // namespace sim

using namespace sim;

#define READY \
	if (!ready) return CUDA_ERROR_NOT_INITIALIZED
#define DEVICE(d)                     \
	READY;                            \
	if (bad(d)) return CUDA_ERROR_INVALID_DEVICE

extern "C" {

CUresult cuInit(unsigned flags) {
	PLAIN(cuInit);
	if (flags) return CUDA_ERROR_INVALID_VALUE;
	if (deviceCount() == 0) return CUDA_ERROR_NO_DEVICE;
	ready = true;
	return CUDA_SUCCESS;
}
CUresult cuDriverGetVersion(int *v) { PLAIN(cuDriverGetVersion); *v = setting("RNA_SIM_DRIVER", 12090); return CUDA_SUCCESS; }
CUresult cuDeviceGetCount(int *n) { PLAIN(cuDeviceGetCount); READY; *n = deviceCount(); return CUDA_SUCCESS; }
CUresult cuDeviceGet(CUdevice *d, int i) { PLAIN(cuDeviceGet); DEVICE(i); *d = i; return CUDA_SUCCESS; }
CUresult cuDeviceGetName(char *s, int n, CUdevice d) { PLAIN(cuDeviceGetName); DEVICE(d); snprintf(s, n, setting("RNA_SIM_MIG", 0) ? "CPU stand-in MIG 1g.1gb" : "CPU stand-in"); return CUDA_SUCCESS; }
CUresult cuDeviceTotalMem_v2(size_t *n, CUdevice d) { PLAIN(cuDeviceTotalMem_v2); DEVICE(d); *n = deviceBytes(); return CUDA_SUCCESS; }
CUresult cuDeviceGetPCIBusId(char *s, int n, CUdevice d) { PLAIN(cuDeviceGetPCIBusId); DEVICE(d); snprintf(s, n, "0000:%02x:00.0", physical(d)); return CUDA_SUCCESS; }

// NVIDIA's NVRTC 13 asks for tables that only NVIDIA's driver has.
CUresult cuGetExportTable(const void **table, const CUuuid *) { PLAIN(cuGetExportTable); *table = nullptr; return CUDA_ERROR_NOT_FOUND; }

static CUresult uuid(CUuuid *u, CUdevice d) {
	memset(u, 0, sizeof *u);
	memcpy(u, "stand-in", 8);
	((char *)u)[15] = (char)physical(d);
	return CUDA_SUCCESS;
}
CUresult cuDeviceGetUuid(CUuuid *u, CUdevice d) { PLAIN(cuDeviceGetUuid); DEVICE(d); return uuid(u, d); }
CUresult cuDeviceGetUuid_v2(CUuuid *u, CUdevice d) { PLAIN(cuDeviceGetUuid_v2); DEVICE(d); return uuid(u, d); }

CUresult cuDeviceGetAttribute(int *v, CUdevice_attribute a, CUdevice d) {
	PLAIN(cuDeviceGetAttribute);
	DEVICE(d);
	static const std::map<int, int> values = {
		{1, 1024},                                // threads a block
		{2, 1024}, {3, 1024}, {4, 64},            // block
		{5, 0x7fffffff}, {6, 65535}, {7, 65535},  // grid
		{8, 48 << 10}, {9, 64 << 10}, {10, 32}, {12, 65536},
		{13, 1000000}, {16, 4}, {19, 1}, {31, 1},
		{36, 1000000}, {37, 64}, {38, 1 << 20}, {39, 2048}, {40, 2}, {41, 1},
		{78, 1}, {81, 228 << 10}, {83, 0}, {97, 227 << 10},
	};
	if (a == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) {
		*v = capability() / 10;
	} else if (a == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) {
		*v = capability() % 10;
	} else {
		auto it = values.find((int)a);
		*v = it == values.end() ? 0 : it->second;
	}
	return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext *c, unsigned flags, CUdevice d) {
	PLAIN(cuCtxCreate_v2);
	DEVICE(d);
	*c = make(d, flags);
	simLive("contexts", 1);  // a primary context may stay until the process ends
	if (current) stack.push_back(current);
	current = *c;
	return CUDA_SUCCESS;
}

CUresult cuCtxDestroy_v2(CUcontext c) {
	std::lock_guard<std::recursive_mutex> held(lock);
	CUresult late = (CUresult)simEnter("cuCtxDestroy_v2");
	if (!known(contexts, c)) return late ? late : CUDA_ERROR_INVALID_CONTEXT;
	bool top = current == c;
	destroy(c);
	simLive("contexts", -1);
	if (top && !stack.empty()) {
		current = stack.back();
		stack.pop_back();
	}
	return late;
}

CUresult cuCtxSetCurrent(CUcontext c) {
	PLAIN(cuCtxSetCurrent);
	READY;
	if (c && !known(contexts, c)) return CUDA_ERROR_INVALID_CONTEXT;
	current = c;
	return CUDA_SUCCESS;
}
CUresult cuCtxGetCurrent(CUcontext *c) { PLAIN(cuCtxGetCurrent); READY; *c = current; return CUDA_SUCCESS; }
CUresult cuCtxPushCurrent_v2(CUcontext c) {
	PLAIN(cuCtxPushCurrent_v2);
	if (!known(contexts, c)) return CUDA_ERROR_INVALID_CONTEXT;
	if (current) stack.push_back(current);
	current = c;
	return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent_v2(CUcontext *c) {
	PLAIN(cuCtxPopCurrent_v2);
	if (!current) return CUDA_ERROR_INVALID_CONTEXT;
	if (c) *c = current;
	current = stack.empty() ? nullptr : stack.back();
	if (!stack.empty()) stack.pop_back();
	return CUDA_SUCCESS;
}
CUresult cuCtxGetDevice(CUdevice *d) { CALL(cuCtxGetDevice); *d = ctx->device; return CUDA_SUCCESS; }
CUresult cuCtxGetFlags(unsigned *f) { CALL(cuCtxGetFlags); *f = ctx->flags; return CUDA_SUCCESS; }
CUresult cuCtxGetApiVersion(CUcontext c, unsigned *v) {
	PLAIN(cuCtxGetApiVersion);
	if (c ? !known(contexts, c) : !current) return CUDA_ERROR_INVALID_CONTEXT;
	*v = 3020;
	return CUDA_SUCCESS;
}
CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) { CALL(cuCtxGetStreamPriorityRange); *least = 0; *greatest = -5; return CUDA_SUCCESS; }

CUresult cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice d) {
	PLAIN(cuDevicePrimaryCtxRetain);
	DEVICE(d);
	Primary &p = primaries[d];
	if (!p.context) {
		p.context = make(d, p.flags);
		p.made++;
	}
	p.users++;
	*c = p.context;
	return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice d) {
	std::lock_guard<std::recursive_mutex> held(lock);
	CUresult late = (CUresult)simEnter("cuDevicePrimaryCtxRelease_v2");
	DEVICE(d);
	Primary &p = primaries[d];
	if (p.users == 0) return late ? late : CUDA_ERROR_INVALID_CONTEXT;
	if (--p.users == 0 && p.context) {
		destroy(p.context);
		p.context = nullptr;
	}
	return late;
}
CUresult cuDevicePrimaryCtxReset_v2(CUdevice d) {
	std::lock_guard<std::recursive_mutex> held(lock);
	CUresult late = (CUresult)simEnter("cuDevicePrimaryCtxReset_v2");
	DEVICE(d);
	Primary &p = primaries[d];
	if (p.context) {
		destroy(p.context);
		p.context = nullptr;  // its users still have to release it
	}
	return late;
}
CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice d, unsigned flags) { PLAIN(cuDevicePrimaryCtxSetFlags_v2); DEVICE(d); primaries[d].flags = flags; return CUDA_SUCCESS; }
CUresult cuDevicePrimaryCtxGetState(CUdevice d, unsigned *flags, int *active) {
	PLAIN(cuDevicePrimaryCtxGetState);
	DEVICE(d);
	*flags = primaries[d].flags;
	*active = primaries[d].context != nullptr;
	return CUDA_SUCCESS;
}

// Real libraries keep state for each primary context that outlives their handles, and fail in the context's successor.
int simFirstContext() {
	std::lock_guard<std::recursive_mutex> held(lock);
	auto it = current ? primaries.find(current->device) : primaries.end();
	return it == primaries.end() || it->second.context != current || it->second.made == 1;
}

static const struct {
	int code;
	const char *name, *text;
} results[] = {
	{0, "CUDA_SUCCESS", "no error"},
	{1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
	{2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
	{3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
	{100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
	{101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
	{214, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered"},
	{226, "CUDA_ERROR_CONTAINED", "an exception occurred on the device that is now contained"},
	{200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
	{201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
	{400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
	{401, "CUDA_ERROR_ILLEGAL_STATE", "the operation cannot be performed in the present state"},
	{500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
	{600, "CUDA_ERROR_NOT_READY", "device not ready"},
	{700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
	{701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
	{716, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
	{719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
	{721, "CUDA_ERROR_TENSOR_MEMORY_LEAK", "exception while exiting kernel because of tensor memory leak"},
	{900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
	{901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error during capture"},
	{902, "CUDA_ERROR_STREAM_CAPTURE_MERGE", "operation would result in a merge of separate capture sequences"},
	{903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "capture was not ended in the same stream as it began"},
	{904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "capturing stream has unjoined work"},
	{905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "dependency created on uncaptured work in another stream"},
	{906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "operation would make the legacy stream depend on a capturing blocking stream"},
	{907, "CUDA_ERROR_CAPTURED_EVENT", "operation not permitted on an event last recorded in a capturing stream"},
	{908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "attempt to terminate a thread-local capture sequence from another thread"},
	{999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};
CUresult cuGetErrorName(CUresult r, const char **s) {
	*s = nullptr;
	for (auto &e : results)
		if (e.code == (int)r) *s = e.name;
	return *s ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuGetErrorString(CUresult r, const char **s) {
	*s = nullptr;
	for (auto &e : results)
		if (e.code == (int)r) *s = e.text;
	return *s ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // extern "C"
