// Device memory: each allocation lies between inaccessible pages and ends at the end of a page. It is NaN until it is
// written, closed to the host unless device work runs, and its addresses are never used again.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <vector>

#include "engine.h"
#include "sim.h"

namespace sim {
namespace {

constexpr size_t page = 4096;

enum Kind { Device, Pinned, Registered };
const char *const kinds[] = {"device allocations", "pinned host allocations", "registered host ranges"};

struct Block {
	Kind kind;
	CUcontext context;
	int device;
	char *base;
	size_t bytes;
	char *map;  // with the pages round it
	size_t mapped;
	bool open;  // to all threads, of device memory without a key
	char *first() const { return map + page; }
	size_t pages() const { return mapped - 2 * page; }
};
std::map<uintptr_t, Block> blocks;  // by address
std::map<uintptr_t, size_t> freed;  // recently
int opened;

// key is the processor's protection key for device memory: a thread opens and closes all of it at once. It is -1 if the
// processor has none: then an allocation is opened when device work touches it, and closed after that work.
int key() {
	static int k = pkey_alloc(0, PKEY_DISABLE_ACCESS);
	return k;
}

// shut closes device memory to this thread, or opens it.
void shut(bool on) { pkey_set(key(), on ? PKEY_DISABLE_ACCESS : 0); }

void access(Block &b, bool on) {
	if (b.kind == Device && key() >= 0) {
		shut(!on);
	} else {
		mprotect(b.first(), b.pages(), on ? PROT_READ | PROT_WRITE : PROT_NONE);
		b.open = on;
	}
}

Block *find(const void *p) {
	auto it = blocks.upper_bound((uintptr_t)p);
	if (it == blocks.begin()) return nullptr;
	Block &b = std::prev(it)->second;
	return (char *)p < b.base + b.bytes ? &b : nullptr;
}

bool holds(const Block *b, const void *p, size_t bytes) { return b && bytes <= (size_t)(b->base + b->bytes - (char *)p); }

void *map(Kind kind, CUcontext c, size_t bytes) {
	Block b{};
	b.kind = kind;
	b.context = c;
	b.device = c->device;
	b.bytes = bytes;
	b.mapped = (bytes + page - 1) / page * page + 2 * page;
	b.map = (char *)mmap(nullptr, b.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (b.map == MAP_FAILED) return nullptr;
	if (kind == Device && key() >= 0) pkey_mprotect(b.first(), b.pages(), PROT_READ | PROT_WRITE, key());
	access(b, true);
	b.base = b.first() + b.pages() - (bytes + 15) / 16 * 16;
	memset(b.first(), 0xff, b.pages());
	if (kind == Device && !opened) access(b, false);
	blocks[(uintptr_t)b.base] = b;
	simLive(kinds[kind], 1);
	return b.base;
}

// clean reports whether the bytes round a block are unchanged.
bool clean(const Block &b) {
	auto fresh = [](const char *from, const char *to) {
		return std::all_of(from, to, [](char c) { return c == (char)0xff; });
	};
	return fresh(b.first(), b.base) && fresh(b.base + b.bytes, b.first() + b.pages());
}

void forget(const Block &b) {
	Kind kind = b.kind;
	blocks.erase((uintptr_t)b.base);
	simLive(kinds[kind], -1);
}

// release gives a block back. Its addresses stay reserved.
CUresult release(Block b, CUcontext c) {
	access(b, true);
	bool ok = clean(b);
	if (b.kind == Device && !opened) access(b, false);
	mmap(b.map, b.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	forget(b);
	freed[(uintptr_t)b.base] = b.bytes;
	if (!ok) {
		char text[100];
		snprintf(text, sizeof text, "something wrote beside the %zu bytes at %p", b.bytes, (void *)b.base);
		return fail(c, CUDA_ERROR_ILLEGAL_ADDRESS, text);
	}
	return CUDA_SUCCESS;
}

}  // namespace

bool inRange(CUcontext c, const void *p, size_t bytes) {
	if (bytes == 0) return true;
	Block *b = find(p);
	return holds(b, p, bytes) && (b->kind != Device || b->device == c->device);
}

bool blockAt(const void *p, uintptr_t *from, uintptr_t *to) {
	Block *b = find(p);
	if (!b) return false;
	*from = (uintptr_t)b->base;
	*to = *from + b->bytes;
	return true;
}

bool pinned(const void *p, size_t bytes) {
	Block *b = find(p);
	return holds(b, p, bytes) && b->kind != Device;
}

void releaseAll(CUcontext c, bool lost) {
	std::vector<Block> mine;
	for (auto &[at, b] : blocks)
		if (b.context == c) mine.push_back(b);
	for (Block &b : mine) {
		if (b.kind == Registered)
			forget(b);
		else
			release(b, nullptr);
		if (!lost) simLive(kinds[b.kind], 1);  // never released
	}
}

void open(bool on) {
	if (on ? opened++ : --opened) return;
	if (key() >= 0) return shut(!on);
	if (on) return;
	for (auto &[at, b] : blocks)
		if (b.kind == Device && b.open) access(b, false);
}

void reopen() {
	if (opened && key() >= 0) shut(false);
}

bool touch(const void *p) {
	if (!opened || key() >= 0) return false;
	auto next = blocks.lower_bound((uintptr_t)p);
	bool before = next != blocks.end() && next->second.kind == Device && (char *)p >= next->second.first();
	if (!before && next == blocks.begin()) return false;
	Block &b = before ? next->second : std::prev(next)->second;
	if (b.kind != Device || b.open || (char *)p < b.first() || (char *)p >= b.first() + b.pages()) return false;
	access(b, true);
	return true;
}

size_t used(int device) {
	size_t n = 0;
	for (auto &[at, b] : blocks)
		if (b.kind == Device && b.device == device) n += b.bytes;
	for (CUcontext c : contexts)
		if (c->device == device) n += c->taken;
	return n + elsewhere(device);
}

CUresult take(CUcontext c, long bytes) {
	size_t in = used(c->device), all = deviceBytes();
	if (bytes > 0 && (in > all || (size_t)bytes > all - in)) return CUDA_ERROR_OUT_OF_MEMORY;
	c->taken += bytes;
	return CUDA_SUCCESS;
}

std::string describe(const void *p) {
	char text[200];
	auto next = blocks.upper_bound((uintptr_t)p);
	if (next != blocks.begin()) {
		Block &b = std::prev(next)->second;
		if ((char *)p < b.map + b.mapped) {
			snprintf(text, sizeof text, "%p, %td bytes past the end of %zu bytes at %p", p, (char *)p - b.base - b.bytes, b.bytes, (void *)b.base);
			return text;
		}
	}
	if (next != blocks.end() && (char *)p >= next->second.map) {
		Block &b = next->second;
		snprintf(text, sizeof text, "%p, %td bytes before %zu bytes at %p", p, b.base - (char *)p, b.bytes, (void *)b.base);
		return text;
	}
	auto old = freed.upper_bound((uintptr_t)p);
	if (old != freed.begin() && (uintptr_t)p < std::prev(old)->first + std::prev(old)->second) {
		snprintf(text, sizeof text, "%p, in %zu bytes that were freed", p, std::prev(old)->second);
		return text;
	}
	snprintf(text, sizeof text, "%p, in nobody's memory", p);
	return text;
}

namespace {

// move copies, within device work.
void move(void *dst, const void *src, size_t n) {
	touch(dst);
	touch(src);
	memmove(dst, src, n);
}

// copy queues a copy between device or pinned memory.
CUresult copy(CUcontext c, CUstream s, void *dst, const void *src, size_t n) {
	return queue(c, s, [=] {
		if (!inRange(c, dst, n) || !inRange(c, src, n)) return std::string("a copy of memory that was freed before it ran");
		simMove(pinned(src, n) ? 0 : n, pinned(dst, n) ? 0 : n);
		move(dst, src, n);
		return std::string();
	});
}

// toDevice, toHost: pageable host memory is read and written when the copy runs, as a driver may do on suitable
// hardware.
CUresult toDevice(CUcontext c, CUstream s, void *dst, const void *src, size_t n) {
	if (!inRange(c, dst, n)) return CUDA_ERROR_INVALID_VALUE;
	if (pinned(src, n)) return copy(c, s, dst, src, n);
	if (s->capture) return spoil(s, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	return queue(c, s, [=] {
		if (!inRange(c, dst, n)) return std::string("a copy to memory that was freed before it ran");
		simMove(0, n);
		move(dst, src, n);
		return std::string();
	});
}

CUresult toHost(CUcontext c, CUstream s, void *dst, const void *src, size_t n) {
	if (!inRange(c, src, n)) return CUDA_ERROR_INVALID_VALUE;
	if (pinned(dst, n)) return copy(c, s, dst, src, n);
	if (s->capture) return spoil(s, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	return queue(c, s, [=] {
		if (!inRange(c, src, n)) return std::string("a copy of memory that was freed before it ran");
		simMove(n, 0);
		move(dst, src, n);
		return std::string();
	});
}

CUresult within(CUcontext c, CUstream s, void *dst, const void *src, size_t n) {
	if (!inRange(c, dst, n) || !inRange(c, src, n)) return CUDA_ERROR_INVALID_VALUE;
	return copy(c, s, dst, src, n);
}

// any is a copy whose direction follows from the addresses.
CUresult any(CUcontext c, CUstream s, void *dst, const void *src, size_t n) {
	bool to = inRange(c, dst, n), from = inRange(c, src, n);
	if (to && from) return copy(c, s, dst, src, n);
	return to ? toDevice(c, s, dst, src, n) : toHost(c, s, dst, src, n);
}

template <class T> CUresult fill(CUcontext c, CUstream s, CUdeviceptr dst, T v, size_t n) {
	if (dst % sizeof(T) || n > SIZE_MAX / sizeof(T) || !inRange(c, (void *)dst, n * sizeof(T))) return CUDA_ERROR_INVALID_VALUE;
	return queue(c, s, [=] {
		if (!inRange(c, (void *)dst, n * sizeof(T))) return std::string("a fill of memory that was freed before it ran");
		simMove(0, n * sizeof(T));
		touch((void *)dst);
		std::fill_n((T *)dst, n, v);
		return std::string();
	});
}

CUresult now(CUcontext c, CUresult r) { return r ? r : drain(c, &c->null); }

}  // namespace
}  // namespace sim

using namespace sim;

int simTake(CUcontext c, long bytes) {
	std::lock_guard<std::recursive_mutex> held(lock);
	return known(contexts, c) ? take(c, bytes) : CUDA_SUCCESS;  // it went with its context
}

#define STREAM(s)                       \
	CUstream to = resolve(ctx, s);      \
	if (!to) return CUDA_ERROR_INVALID_HANDLE

extern "C" {

CUresult cuMemGetInfo_v2(size_t *free, size_t *total) {
	CALL(cuMemGetInfo_v2);
	*total = deviceBytes();
	size_t in = used(ctx->device);
	*free = in > *total ? 0 : *total - in;
	return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t n) {
	CALL(cuMemAlloc_v2);
	SAFE;
	if (!p || n == 0) return CUDA_ERROR_INVALID_VALUE;
	size_t in = used(ctx->device), all = deviceBytes();
	if (in > all || n > all - in) return CUDA_ERROR_OUT_OF_MEMORY;
	void *at = map(Device, ctx, n);
	if (!at) return CUDA_ERROR_OUT_OF_MEMORY;
	*p = (CUdeviceptr)at;
	return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr p) {
	RELEASE(cuMemFree_v2);
	SAFE;
	if (!p) return late;
	CUresult r = drainAll(ctx);
	Block *b = find((void *)p);
	if (!b || b->kind != Device || b->base != (char *)p) return late ? late : CUDA_ERROR_INVALID_VALUE;
	CUresult dirty = release(*b, ctx);
	return late ? late : r ? r : dirty;
}

static CUresult hostAlloc(CUcontext ctx, void **p, size_t n) {
	if (!p || n == 0) return CUDA_ERROR_INVALID_VALUE;
	*p = map(Pinned, ctx, n);
	return *p ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemAllocHost_v2(void **p, size_t n) {
	CALL(cuMemAllocHost_v2);
	SAFE;
	return hostAlloc(ctx, p, n);
}

CUresult cuMemHostAlloc(void **p, size_t n, unsigned flags) {
	CALL(cuMemHostAlloc);
	SAFE;
	if (flags > 7) return CUDA_ERROR_INVALID_VALUE;
	return hostAlloc(ctx, p, n);
}

CUresult cuMemFreeHost(void *p) {
	RELEASE(cuMemFreeHost);
	SAFE;
	CUresult r = drainAll(ctx);
	Block *b = find(p);
	if (!b || b->kind != Pinned || b->base != p) return late ? late : CUDA_ERROR_INVALID_VALUE;
	CUresult dirty = release(*b, ctx);
	return late ? late : r ? r : dirty;
}

CUresult cuMemHostRegister_v2(void *p, size_t n, unsigned) {
	CALL(cuMemHostRegister_v2);
	SAFE;
	if (!p || n == 0) return CUDA_ERROR_INVALID_VALUE;
	if (find(p)) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	Block b{};
	b.kind = Registered;
	b.context = ctx;
	b.base = b.map = (char *)p;
	b.bytes = b.mapped = n;
	blocks[(uintptr_t)p] = b;
	simLive(kinds[Registered], 1);
	return CUDA_SUCCESS;
}

CUresult cuMemHostUnregister(void *p) {
	RELEASE(cuMemHostUnregister);
	SAFE;
	CUresult r = drainAll(ctx);
	Block *b = find(p);
	if (!b || b->kind != Registered || b->base != p) return late ? late : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	forget(Block(*b));
	return late ? late : r;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *d, void *p, unsigned flags) {
	CALL(cuMemHostGetDevicePointer_v2);
	if (flags || !pinned(p, 1)) return CUDA_ERROR_INVALID_VALUE;
	*d = (CUdeviceptr)p;
	return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *n, CUdeviceptr p) {
	CALL(cuMemGetAddressRange_v2);
	Block *b = find((void *)p);
	if (!b) return CUDA_ERROR_NOT_FOUND;
	if (base) *base = (CUdeviceptr)b->base;
	if (n) *n = b->bytes;
	return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute what, CUdeviceptr p) {
	CALL(cuPointerGetAttribute);
	Block *b = find((void *)p);
	if (!b) return CUDA_ERROR_INVALID_VALUE;
	switch ((int)what) {
	case 1: *(CUcontext *)data = b->context; return CUDA_SUCCESS;
	case 2: *(unsigned *)data = b->kind == Device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST; return CUDA_SUCCESS;
	case 3: *(CUdeviceptr *)data = p; return CUDA_SUCCESS;
	}
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr d, const void *s, size_t n) { CALL(cuMemcpyHtoD_v2); SAFE; return now(ctx, toDevice(ctx, &ctx->null, (void *)d, s, n)); }
CUresult cuMemcpyDtoH_v2(void *d, CUdeviceptr s, size_t n) { CALL(cuMemcpyDtoH_v2); SAFE; return now(ctx, toHost(ctx, &ctx->null, d, (void *)s, n)); }
CUresult cuMemcpyDtoD_v2(CUdeviceptr d, CUdeviceptr s, size_t n) { CALL(cuMemcpyDtoD_v2); SAFE; return within(ctx, &ctx->null, (void *)d, (void *)s, n); }
CUresult cuMemcpy(CUdeviceptr d, CUdeviceptr s, size_t n) { CALL(cuMemcpy); SAFE; return now(ctx, any(ctx, &ctx->null, (void *)d, (void *)s, n)); }

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr d, const void *s, size_t n, CUstream st) { CALL(cuMemcpyHtoDAsync_v2); STREAM(st); return toDevice(ctx, to, (void *)d, s, n); }
CUresult cuMemcpyDtoHAsync_v2(void *d, CUdeviceptr s, size_t n, CUstream st) { CALL(cuMemcpyDtoHAsync_v2); STREAM(st); return toHost(ctx, to, d, (void *)s, n); }
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr d, CUdeviceptr s, size_t n, CUstream st) { CALL(cuMemcpyDtoDAsync_v2); STREAM(st); return within(ctx, to, (void *)d, (void *)s, n); }
CUresult cuMemcpyAsync(CUdeviceptr d, CUdeviceptr s, size_t n, CUstream st) { CALL(cuMemcpyAsync); STREAM(st); return any(ctx, to, (void *)d, (void *)s, n); }

CUresult cuMemsetD8_v2(CUdeviceptr d, unsigned char v, size_t n) { CALL(cuMemsetD8_v2); SAFE; return fill(ctx, &ctx->null, d, v, n); }
CUresult cuMemsetD16_v2(CUdeviceptr d, unsigned short v, size_t n) { CALL(cuMemsetD16_v2); SAFE; return fill(ctx, &ctx->null, d, v, n); }
CUresult cuMemsetD32_v2(CUdeviceptr d, unsigned v, size_t n) { CALL(cuMemsetD32_v2); SAFE; return fill(ctx, &ctx->null, d, v, n); }
CUresult cuMemsetD8Async(CUdeviceptr d, unsigned char v, size_t n, CUstream st) { CALL(cuMemsetD8Async); STREAM(st); return fill(ctx, to, d, v, n); }
CUresult cuMemsetD16Async(CUdeviceptr d, unsigned short v, size_t n, CUstream st) { CALL(cuMemsetD16Async); STREAM(st); return fill(ctx, to, d, v, n); }
CUresult cuMemsetD32Async(CUdeviceptr d, unsigned v, size_t n, CUstream st) { CALL(cuMemsetD32Async); STREAM(st); return fill(ctx, to, d, v, n); }

}  // extern "C"
