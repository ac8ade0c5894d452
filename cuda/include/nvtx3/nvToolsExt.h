/* Declarations of NVTX's injection protocol, by which a profiler takes the calls of a program, from NVIDIA's headers. */
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef void (*NvtxFunctionPointer)(void);
typedef NvtxFunctionPointer **NvtxFunctionTable; /* by a function's number, the place where the profiler puts it */

typedef int NvtxCallbackModule;
enum {
	NVTX_CB_MODULE_CORE = 1,
	NVTX_CB_MODULE_CUDA = 2,
	NVTX_CB_MODULE_OPENCL = 3,
	NVTX_CB_MODULE_CUDART = 4,
	NVTX_CB_MODULE_CORE2 = 5,
	NVTX_CB_MODULE_SYNC = 6,
	NVTX_CB_MODULE_SIZE = 7,
};

/* The numbers of functions: those that are called here, and how many there are. */
enum {
	NVTX_CBID_CORE_RangePushA = 9,
	NVTX_CBID_CORE_RangePop = 11,
	NVTX_CBID_CORE_NameOsThreadA = 14,
	NVTX_CBID_CORE_SIZE = 16,
	NVTX_CBID_CUDA_NameCuStreamA = 5,
	NVTX_CBID_CUDA_SIZE = 9,
	NVTX_CBID_OPENCL_SIZE = 15,
	NVTX_CBID_CUDART_SIZE = 7,
	NVTX_CBID_CORE2_SIZE = 16,
	NVTX_CBID_SYNC_SIZE = 7,
};
typedef int (*nvtxRangePushA_impl_fntype)(const char *message);
typedef int (*nvtxRangePop_impl_fntype)(void);
typedef void (*nvtxNameOsThreadA_impl_fntype)(uint32_t thread, const char *name);
struct CUstream_st;
typedef void (*nvtxNameCuStreamA_fakeimpl_fntype)(struct CUstream_st *stream, const char *name);

enum {
	NVTX_ETID_CALLBACKS = 1,
	NVTX_ETID_VERSIONINFO = 3,
};
typedef int (*NvtxGetModuleFunctionTable)(NvtxCallbackModule module, NvtxFunctionTable *table, unsigned *size);
struct NvtxExportTableCallbacks
{
	size_t struct_size;
	NvtxGetModuleFunctionTable GetModuleFunctionTable;
};
typedef void (*NvtxSetInjectionVersion)(uint32_t version);
struct NvtxExportTableVersionInfo
{
	size_t struct_size;
	uint32_t version;
	uint32_t reserved0;
	NvtxSetInjectionVersion SetInjectionNvtxVersion;
};
typedef const void *(*NvtxGetExportTableFunc_t)(uint32_t table);
typedef int (*NvtxInitializeInjectionNvtxFunc_t)(NvtxGetExportTableFunc_t tables); /* InitializeInjectionNvtx2 */
