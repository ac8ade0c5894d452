// Modules and launches.
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <vector>

#include "engine.h"
#include "image.h"
#include "sim.h"

struct CUfunc_st {
	const SimImage *image;
	const SimKernel *kernel;
	std::shared_ptr<const std::string> source;
	int dynamicMost = 0;
	bool loaded = false;  // code goes to the device at cuFuncLoad or at the first launch
};
struct CUmod_st {
	CUcontext context;
	void *object;
	int fd;  // stays open: dlopen tells objects apart by their path, which has its number
	const SimImage *image;
	std::vector<CUfunc_st> functions;
};

namespace sim {

std::set<CUmodule> modules;

namespace {

constexpr size_t sharedLimit = 48 << 10, sharedMost = 227 << 10;

constexpr long codeBytes = 4 << 10;  // of a kernel

CUresult loaded(CUcontext c, CUfunction f) {
	if (f->loaded) return CUDA_SUCCESS;
	CUresult r = take(c, codeBytes);
	f->loaded = r == CUDA_SUCCESS;
	return r;
}

// load opens the shared object of an image.
CUresult load(CUcontext c, CUmodule *m, const void *data) {
	const SimHeader *h = (const SimHeader *)data;
	if (memcmp(h->magic, simMagic, sizeof h->magic)) return CUDA_ERROR_INVALID_IMAGE;
	if (h->identity != simIdentity()) return CUDA_ERROR_NO_BINARY_FOR_GPU;
	int fd = memfd_create("kernels", 0);
	const char *from = (const char *)(h + 1);
	bool written = fd >= 0;
	for (uint64_t n = 0; written && n < h->bytes;) {
		ssize_t k = write(fd, from + n, h->bytes - n);
		written = k > 0;
		n += written ? k : 0;
	}
	char path[40];
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	void *object = written ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
	if (!object) fprintf(stderr, "sim: load of kernels: %s\n", written ? dlerror() : "no memory file");
	const SimImage *image = object ? (const SimImage *)dlsym(object, "simImage") : nullptr;
	if (!image || image->abi != simAbi) {
		if (object) dlclose(object);
		if (fd >= 0) close(fd);
		return CUDA_ERROR_INVALID_IMAGE;
	}
	*image->engine = &engine;
	*m = new CUmod_st{c, object, fd, image, {}};
	auto source = std::make_shared<const std::string>(from + h->bytes, h->source);
	for (unsigned i = 0; i < image->count; i++) (*m)->functions.push_back({image, image->kernels + i, source});
	modules.insert(*m);
	simLive("modules", 1);
	return CUDA_SUCCESS;
}

void unload(CUmodule m) {
	for (CUfunc_st &f : m->functions)
		if (f.loaded) take(m->context, -codeBytes);
	modules.erase(m);
	dlclose(m->object);
	close(m->fd);
	delete m;
}

bool isFunction(CUfunction f) {
	for (CUmodule m : modules)
		if (f >= m->functions.data() && f < m->functions.data() + m->functions.size()) return true;
	return false;
}

size_t staticShared(CUfunction f) { return f->image->sharedEnd - f->image->shared; }

}  // namespace

bool imageHolds(const SimImage *image, const void *p) {
	static const SimImage *of;
	static uintptr_t from, to;
	if (of != image) {
		struct Range { uintptr_t at, from, to; } r{(uintptr_t)image, 0, 0};
		dl_iterate_phdr([](dl_phdr_info *info, size_t, void *p) {
			Range &r = *(Range *)p;
			uintptr_t lo = UINTPTR_MAX, hi = 0;
			for (int i = 0; i < info->dlpi_phnum; i++)
				if (info->dlpi_phdr[i].p_type == PT_LOAD) {
					lo = std::min<uintptr_t>(lo, info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
					hi = std::max<uintptr_t>(hi, info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz);
				}
			if (r.at < lo || r.at >= hi) return 0;
			r.from = lo, r.to = hi;
			return 1;
		}, &r);
		of = image, from = r.from, to = r.to;
	}
	return (uintptr_t)p >= from && (uintptr_t)p < to;
}

void dropModules(CUcontext c, bool lost) {
	for (CUmodule m : std::set<CUmodule>(modules)) {
		if (m->context != c) continue;
		unload(m);
		if (lost) simLive("modules", -1);
	}
}

}  // namespace sim

using namespace sim;

extern "C" {

CUresult cuModuleLoadData(CUmodule *m, const void *data) { CALL(cuModuleLoadData); SAFE; return m && data ? load(ctx, m, data) : CUDA_ERROR_INVALID_VALUE; }
CUresult cuModuleLoadDataEx(CUmodule *m, const void *data, unsigned, CUjit_option *, void **) {
	CALL(cuModuleLoadDataEx);
	SAFE;
	return m && data ? load(ctx, m, data) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuModuleUnload(CUmodule m) {
	RELEASE(cuModuleUnload);
	SAFE;
	if (!known(modules, m)) return late ? late : CUDA_ERROR_INVALID_HANDLE;
	CUresult r = drainAll(ctx);
	unload(m);
	simLive("modules", -1);
	return late ? late : r;
}

CUresult cuModuleGetFunction(CUfunction *f, CUmodule m, const char *name) {
	CALL(cuModuleGetFunction);
	if (!known(modules, m)) return CUDA_ERROR_INVALID_HANDLE;
	for (CUfunc_st &k : m->functions)
		if (!strcmp(k.kernel->name, name)) {
			*f = &k;
			return setting("RNA_SIM_DRIVER", 12090) < 12040 ? loaded(ctx, &k) : CUDA_SUCCESS;
		}
	return CUDA_ERROR_NOT_FOUND;
}

CUresult cuFuncLoad(CUfunction f) {
	CALL(cuFuncLoad);
	SAFE;
	if (setting("RNA_SIM_DRIVER", 12090) < 12040) return CUDA_ERROR_NOT_FOUND;
	if (!isFunction(f)) return CUDA_ERROR_INVALID_HANDLE;
	return loaded(ctx, f);
}

CUresult cuFuncGetAttribute(int *v, CUfunction_attribute a, CUfunction f) {
	CALL(cuFuncGetAttribute);
	if (!isFunction(f)) return CUDA_ERROR_INVALID_HANDLE;
	switch ((int)a) {
	case 0: *v = 1024; break;
	case 1: *v = staticShared(f); break;
	case 4: *v = 32; break;
	case 5: case 6: *v = capability(); break;
	case 8: *v = f->dynamicMost; break;
	default: *v = 0;
	}
	return CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute a, int v) {
	CALL(cuFuncSetAttribute);
	if (!isFunction(f)) return CUDA_ERROR_INVALID_HANDLE;
	if ((int)a != 8 || v < 0 || (size_t)v + staticShared(f) > sharedMost) return CUDA_ERROR_INVALID_VALUE;
	f->dynamicMost = v;
	return CUDA_SUCCESS;
}
CUresult cuFuncSetCacheConfig(CUfunction f, CUfunc_cache) { CALL(cuFuncSetCacheConfig); return isFunction(f) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE; }
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, CUfunction f, int threads, size_t) {
	CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor);
	if (!isFunction(f) || threads < 1 || threads > 1024) return CUDA_ERROR_INVALID_VALUE;
	*n = 2048 / threads;
	return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, CUstream s, void **parameters, void **extra) {
	CALL(cuLaunchKernel);
	CUstream to = resolve(ctx, s);
	if (!to || !isFunction(f)) return CUDA_ERROR_INVALID_HANDLE;
	if (extra || !gx || !gy || !gz || !bx || !by || !bz || gx > 0x7fffffff || gy > 65535 || gz > 65535) return CUDA_ERROR_INVALID_VALUE;
	if (bx > 1024 || by > 1024 || bz > 64 || (size_t)bx * by * bz > 1024) return CUDA_ERROR_INVALID_VALUE;
	if (shared > std::max<size_t>(sharedLimit - std::min(staticShared(f), sharedLimit), f->dynamicMost)) return CUDA_ERROR_INVALID_VALUE;
	if (!f->loaded && to->capture) return spoil(to, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	if (CUresult r = loaded(ctx, f)) return r;
	const SimKernel *k = f->kernel;
	simLaunched(k->name);
	// The values are copied: a launch is over before the kernel runs.
	size_t total = 0;
	for (unsigned i = 0; i < k->parameters; i++) {
		if (!parameters || !parameters[i]) return CUDA_ERROR_INVALID_VALUE;
		total += (k->sizes[i] + 15) / 16 * 16;
	}
	auto values = std::make_shared<std::vector<char>>(total + 16);
	std::vector<size_t> offsets;
	size_t at = 0;
	for (unsigned i = 0; i < k->parameters; i++) {
		memcpy(values->data() + at, parameters[i], k->sizes[i]);
		offsets.push_back(at);
		at += (k->sizes[i] + 15) / 16 * 16;
	}
	const SimImage *image = f->image;
	auto source = f->source;
	return queue(ctx, to, [=] {
		std::vector<void *> pointers;
		for (size_t o : offsets) pointers.push_back(values->data() + o);
		pointers.push_back(nullptr);
		return recorded(*source, image, k, {{gx, gy, gz}, {bx, by, bz}, shared}, pointers.data());
	});
}

}  // extern "C"
