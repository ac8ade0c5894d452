//go:build gpu

// The program's side of NVTX's injection protocol: the profiler's library is given tables of functions, and puts its own
// in them.
#include <dlfcn.h>
#include <string.h>
#include <nvtx3/nvToolsExt.h>
#include "inject.h"

enum { MOST = 16, VERSION = 3 };

static NvtxFunctionPointer functions[NVTX_CB_MODULE_SIZE][MOST];
static NvtxFunctionPointer *tables[NVTX_CB_MODULE_SIZE][MOST + 1]; // the first and the last are empty
static const unsigned sizes[NVTX_CB_MODULE_SIZE] = {
	[NVTX_CB_MODULE_CORE] = NVTX_CBID_CORE_SIZE,     [NVTX_CB_MODULE_CUDA] = NVTX_CBID_CUDA_SIZE,
	[NVTX_CB_MODULE_OPENCL] = NVTX_CBID_OPENCL_SIZE, [NVTX_CB_MODULE_CUDART] = NVTX_CBID_CUDART_SIZE,
	[NVTX_CB_MODULE_CORE2] = NVTX_CBID_CORE2_SIZE,   [NVTX_CB_MODULE_SYNC] = NVTX_CBID_SYNC_SIZE,
};

static int module(NvtxCallbackModule m, NvtxFunctionTable *table, unsigned *size) {
	if (m <= 0 || m >= NVTX_CB_MODULE_SIZE)
		return 0;
	for (unsigned i = 1; i < sizes[m]; i++)
		tables[m][i] = &functions[m][i];
	if (table)
		*table = tables[m];
	if (size)
		*size = sizes[m];
	return 1;
}

static void ignore(uint32_t version) { (void)version; }

static const struct NvtxExportTableCallbacks callbacks = {sizeof callbacks, module};
static const struct NvtxExportTableVersionInfo version = {sizeof version, VERSION, 0, ignore};

static const void *exported(uint32_t table) {
	switch (table) {
	case NVTX_ETID_CALLBACKS:
		return &callbacks;
	case NVTX_ETID_VERSIONINFO:
		return &version;
	}
	return NULL;
}

// nvtx_attach loads a profiler's library and returns whether it takes ranges.
int nvtx_attach(const char *path) {
	void *library = dlopen(path, RTLD_LAZY);
	if (!library)
		return 0;
	NvtxInitializeInjectionNvtxFunc_t start =
		(NvtxInitializeInjectionNvtxFunc_t)dlsym(library, "InitializeInjectionNvtx2");
	if (!start || !start(exported)) {
		memset(functions, 0, sizeof functions);
		dlclose(library);
		return 0;
	}
	return functions[NVTX_CB_MODULE_CORE][NVTX_CBID_CORE_RangePushA] &&
		functions[NVTX_CB_MODULE_CORE][NVTX_CBID_CORE_RangePop];
}

void nvtx_push(const char *name) {
	((nvtxRangePushA_impl_fntype)functions[NVTX_CB_MODULE_CORE][NVTX_CBID_CORE_RangePushA])(name);
}

void nvtx_pop(void) { ((nvtxRangePop_impl_fntype)functions[NVTX_CB_MODULE_CORE][NVTX_CBID_CORE_RangePop])(); }

void nvtx_name_thread(uint32_t thread, const char *name) {
	NvtxFunctionPointer f = functions[NVTX_CB_MODULE_CORE][NVTX_CBID_CORE_NameOsThreadA];
	if (f)
		((nvtxNameOsThreadA_impl_fntype)f)(thread, name);
}

void nvtx_name_stream(void *stream, const char *name) {
	NvtxFunctionPointer f = functions[NVTX_CB_MODULE_CUDA][NVTX_CBID_CUDA_NameCuStreamA];
	if (f)
		((nvtxNameCuStreamA_fakeimpl_fntype)f)(stream, name);
}
