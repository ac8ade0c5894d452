// A profiler's library that takes NVTX ranges: NVTX_INJECTION64_PATH names it, and RNA_SIM_NVTX the file to which it
// appends a line for each call.
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

extern "C" {
#include <nvtx3/nvToolsExt.h>
}

namespace {

FILE *out;
thread_local int depth;  // of the thread's open ranges

long thread() { return syscall(SYS_gettid); }

int push(const char *name) {
	fprintf(out, "%ld %d push %s\n", thread(), depth, name);
	return depth++;
}
int pop() {
	fprintf(out, "%ld %d pop\n", thread(), depth - 1);
	return --depth;
}
void nameThread(uint32_t number, const char *name) { fprintf(out, "%u 0 thread %s\n", number, name); }
void nameStream(struct CUstream_st *, const char *name) { fprintf(out, "%ld 0 stream %s\n", thread(), name); }

bool set(const NvtxExportTableCallbacks *from, NvtxCallbackModule module, unsigned functions, unsigned number,
		void *f) {
	NvtxFunctionTable table;
	unsigned size = 0;
	if (!from->GetModuleFunctionTable(module, &table, &size) || size < functions || !table[number]) return false;
	*table[number] = (NvtxFunctionPointer)f;
	return true;
}

}  // namespace

extern "C" int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t exported) {
	auto version = (const NvtxExportTableVersionInfo *)exported(NVTX_ETID_VERSIONINFO);
	auto from = (const NvtxExportTableCallbacks *)exported(NVTX_ETID_CALLBACKS);
	const char *path = getenv("RNA_SIM_NVTX");
	if (!version || version->struct_size < sizeof *version || !from || from->struct_size < sizeof *from || !path) return 0;
	version->SetInjectionNvtxVersion(3);
	out = fopen(path, "a");
	if (!out) return 0;
	setvbuf(out, nullptr, _IOLBF, BUFSIZ);
	for (int module = NVTX_CB_MODULE_CORE; module < NVTX_CB_MODULE_SIZE; module++)
		if (!from->GetModuleFunctionTable(module, nullptr, nullptr)) return 0;
	return !from->GetModuleFunctionTable(NVTX_CB_MODULE_SIZE, nullptr, nullptr) &&
		set(from, NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_SIZE, NVTX_CBID_CORE_RangePushA, (void *)push) &&
		set(from, NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_SIZE, NVTX_CBID_CORE_RangePop, (void *)pop) &&
		set(from, NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_SIZE, NVTX_CBID_CORE_NameOsThreadA, (void *)nameThread) &&
		set(from, NVTX_CB_MODULE_CUDA, NVTX_CBID_CUDA_SIZE, NVTX_CBID_CUDA_NameCuStreamA, (void *)nameStream);
}
