// Checks each access of kernels compiled with SIM_CHECK. It must lie in memory of the device, or pinned memory, within
// one allocation, at a multiple of its size. If two threads touch the same bytes and one of them writes, something must
// order them: a barrier of their block, a wait of their warp, or between blocks a fence after the write and then an
// atomic operation that the reader's block sees.
#include <stdio.h>
#include <sys/mman.h>

#include <map>
#include <vector>

#include "engine.h"
#include "sim.h"

namespace sim {
namespace {

// A Mark is an access.
struct Mark {
	unsigned launch, block, barriers;
	unsigned short thread, waits;
};
constexpr unsigned many = ~0u;  // readers of several blocks
// A Cell is the last write and read of two bytes.
struct Cell {
	Mark write, read;
};

// A Shadow is the cells of some memory, made when they are first needed.
struct Shadow {
	uintptr_t from, to;
	Cell *cells;
	Shadow(uintptr_t from, uintptr_t to) : from(from & ~(uintptr_t)1), to(to) {
		void *p = mmap(nullptr, size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (p == MAP_FAILED) {
			perror("sim: shadow of memory");
			abort();
		}
		cells = (Cell *)p;
	}
	~Shadow() { munmap(cells, size()); }
	size_t size() const { return ((to - from) / 2 + 1) * sizeof(Cell); }
};
std::map<uintptr_t, Shadow> shadows;
Shadow *last;

// A Release is the set of a block's writes that others may see: those before a number of barriers, and those of a
// thread up to its last fence.
struct Release {
	unsigned barriers = 0;
	std::map<unsigned, std::pair<unsigned, unsigned>> threads;  // barriers and waits
	void join(const Release &o) {
		barriers = std::max(barriers, o.barriers);
		for (auto &[t, at] : o.threads) threads[t] = std::max(threads[t], at);
	}
};
using Seen = std::map<unsigned, Release>;  // by block
struct Block {
	unsigned launch = 0, block = 0;
	bool fences = false;
	std::vector<bool> dirty;  // threads that wrote after their last fence
	Release own;
	Seen seen;
} block;
std::map<const void *, Seen> exchanged;  // by the address of the atomic operation
unsigned exchangedIn;                    // the launch

// enter sets block to that of the running thread.
void enter(const Here &h) {
	if (block.launch == h.launch && block.block == h.block) return;
	block = {h.launch, h.block, false, std::vector<bool>(1024), {}, {}};
	if (exchangedIn != h.launch) exchanged.clear();
	exchangedIn = h.launch;
}

std::string text(const char *what, const void *at, const Mark &m) {
	char s[300];
	snprintf(s, sizeof s, "a race: %s at %p, in no order with thread %u of block %u", what, at, m.thread, m.block);
	return s;
}

// ordered reports whether an access came before the present one of the thread at h, whatever the schedule.
bool ordered(const Mark &m, const Here &h) {
	if (m.launch != h.launch) return true;
	if (m.block == h.block) {
		if (m.thread == h.thread || m.barriers < h.barriers) return true;
		return m.thread / 32 == h.thread / 32 && m.waits < h.waits;
	}
	auto of = block.seen.find(m.block);
	if (m.block == many || of == block.seen.end()) return false;
	if (m.barriers < of->second.barriers) return true;
	auto thread = of->second.threads.find(m.thread);
	return thread != of->second.threads.end() && std::make_pair(m.barriers, (unsigned)m.waits) <= thread->second;
}

Shadow &shadow(uintptr_t from, uintptr_t to) {
	auto it = shadows.find(from);
	if (it != shadows.end() && it->second.to != to) shadows.erase(it), last = nullptr, it = shadows.end();
	if (it == shadows.end()) it = shadows.try_emplace(from, from, to).first;
	return it->second;
}

// of finds the memory of an access, or refuses the access.
Shadow &of(uintptr_t at, unsigned bytes) {
	if (last && at >= last->from && at + bytes <= last->to) return *last;
	uintptr_t from, to;
	if (!blockAt((const void *)at, &from, &to))
		refuse("illegal address " + describe((const void *)at) + ": a kernel touches memory of the host");
	if (at + bytes > to) refuse("illegal address " + describe((const void *)(to)));
	last = &shadow(from, to);
	return *last;
}

void touch(Cell &c, const void *at, bool write, const Here &h, bool shared) {
	Mark now{h.launch, h.block, h.barriers, (unsigned short)h.thread, (unsigned short)std::min(h.waits, 0xffffu)};
	// Each block has its own shared memory.
	auto before = [&](const Mark &m) { return (shared && m.block != h.block) || ordered(m, h); };
	auto &own = c.write;  // a thread reads its own writes from registers or a cache
	bool reads = c.read.launch != h.launch && !(own.launch == h.launch && own.block == h.block && own.thread == h.thread);
	if (!shared && (write ? own.launch != h.launch : reads)) simMove(write ? 0 : 2, write ? 2 : 0);
	if (!before(c.write)) refuse(text(write ? "a write after a write" : "a read after a write", at, c.write));
	if (write) {
		if (!before(c.read)) refuse(text("a write after a read", at, c.read));
		c.write = now;
		return;
	}
	if (c.read.launch == h.launch && !shared && c.read.block != h.block) now.block = many;
	c.read = now;
}

}  // namespace

void checkAccess(const void *p, unsigned bytes, int what) {
	Here h = here();
	uintptr_t at = (uintptr_t)p;
	if (at - (uintptr_t)h.stack < stackBytes) return;
	const SimImage *image = h.image;
	auto inside = [&](const char *from, const char *to) { return at >= (uintptr_t)from && at < (uintptr_t)to; };
	bool fixed = inside(image->shared, image->sharedEnd), shared = fixed || inside(dynamicShared, dynamicSharedEnd);
	// Constants, variables in place of registers, and the engine that the kernel calls.
	if (!shared && (imageHolds(image, p) || inside((const char *)&engine, (const char *)(&engine + 1)))) return;
	if (!(what & SimUnaligned) && at % bytes) {
		char s[100];
		snprintf(s, sizeof s, "misaligned address %p of %u bytes", p, bytes);
		refuse(s);
	}
	enter(h);
	bool write = what & SimWrite;
	Shadow &s = !shared ? of(at, bytes)
	            : fixed ? shadow((uintptr_t)image->shared, (uintptr_t)image->sharedEnd)
	                    : shadow((uintptr_t)dynamicShared, (uintptr_t)dynamicSharedEnd);
	for (unsigned i = 0; i < bytes; i += 2) touch(s.cells[(at + i - s.from) / 2], (const char *)p + i, write, h, shared);
	if (write && !shared) block.dirty[h.thread] = true;
}

void checkAtomic(const void *p, unsigned bytes) {
	Here h = here();
	uintptr_t at = (uintptr_t)p;
	enter(h);
	if (at - (uintptr_t)h.image->shared < (uintptr_t)(h.image->sharedEnd - h.image->shared)) return;
	if (at >= (uintptr_t)dynamicShared && at < (uintptr_t)dynamicSharedEnd) return;
	of(at, bytes);
	Seen &at_ = exchanged[p];
	for (auto &[b, r] : at_) block.seen[b].join(r);
	if (block.fences) {
		at_[h.block].join(block.own);
		for (auto &[b, r] : block.seen) at_[b].join(r);
	}
}

void checkFence() {
	Here h = here();
	enter(h);
	block.fences = true;
	block.dirty[h.thread] = false;
	block.own.barriers = std::max(block.own.barriers, h.barriers);
	block.own.threads[h.thread] = {h.barriers, h.waits};
}

void checkBarrier() {
	if (!block.fences) return;
	for (bool d : block.dirty)
		if (d) return;
	block.own.barriers = std::max(block.own.barriers, here().barriers);
}

}  // namespace sim
