// A libcuda.so.1 for machines without a GPU, with which NVIDIA's own cuDNN makes its plans: engines whose kernels are
// compiled when a plan is made look these functions up, and continue without a device. Nothing runs, and cudnnCreate
// does not get far.
#include <stdint.h>

enum { NO_DEVICE = 100, NOT_SUPPORTED = 801 };
#define LACKS(f) int f(void) { return NOT_SUPPORTED; }
LACKS(cuCtxGetCurrent)
LACKS(cuCtxGetDevice)
LACKS(cuCtxGetLimit)
LACKS(cuCtxPopCurrent)
LACKS(cuCtxPushCurrent)
LACKS(cuDeviceGet)
LACKS(cuDeviceGetAttribute)
LACKS(cuDevicePrimaryCtxRelease)
LACKS(cuDevicePrimaryCtxReset)
LACKS(cuDevicePrimaryCtxRetain)
LACKS(cuFuncGetAttribute)
LACKS(cuLaunchCooperativeKernel)
LACKS(cuLaunchKernel)
LACKS(cuLaunchKernelEx)
LACKS(cuLibraryLoadFromFile)
LACKS(cuLinkAddData)
LACKS(cuLinkAddData_v2)
LACKS(cuLinkAddFile_v2)
LACKS(cuLinkComplete)
LACKS(cuLinkCreate)
LACKS(cuLinkCreate_v2)
LACKS(cuLinkDestroy)
LACKS(cuMemcpyDtoH_v2)
LACKS(cuModuleGetGlobal_v2)
LACKS(cuModuleLoadDataEx)
LACKS(cuModuleLoadFatBinary)
LACKS(cuOccupancyMaxActiveBlocksPerMultiprocessor)
LACKS(cuOccupancyMaxPotentialClusterSize)
LACKS(cuStreamGetCtx)
LACKS(cuStreamSynchronize)
LACKS(cuTensorMapEncodeIm2col)
LACKS(cuTensorMapEncodeTiled)

int cuInit(unsigned flags) { return (void)flags, NO_DEVICE; }
// With another code engines go on to load the kernels that they compiled.
int cuDeviceGetCount(int *n) { return *n = 0, NO_DEVICE; }
int cuDriverGetVersion(int *v) { return *v = 13000, 0; }
int cuGetErrorName(int code, const char **s) { return (void)code, *s = "CUDA_ERROR_NO_DEVICE", 0; }
int cuGetErrorString(int code, const char **s) { return (void)code, *s = "there is no device", 0; }
int cuLibraryLoadData(void **library, const void *code) {
	static uintptr_t count;
	return (void)code, *library = (void *)(0x1000 + ++count), 0;
}
int cuModuleLoadData(void **module, const void *code) { return cuLibraryLoadData(module, code); }
int cuModuleGetFunction(void **function, void *module, const char *name) { return (void)name, *function = module, 0; }
int cuModuleUnload(void *module) { return (void)module, 0; }
int cuFuncSetAttribute(void *function, int attribute, int value) { return (void)function, (void)attribute, (void)value, 0; }
int cuLibraryUnload(void *library) { return (void)library, 0; }
int cuLibraryGetKernel(void **kernel, void *library, const char *name) { return (void)name, *kernel = library, 0; }
int cuKernelGetFunction(void **function, void *kernel) { return *function = kernel, 0; }
int cuKernelSetAttribute(int attribute, int value, void *kernel, int device) { return (void)attribute, (void)value, (void)kernel, (void)device, 0; }
int cuKernelGetAttribute(int *value, int attribute, void *kernel, int device) { return (void)attribute, (void)kernel, (void)device, *value = 0, 0; }
