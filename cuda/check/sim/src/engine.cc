// The threads of a block are fibers, which switch at barriers and shuffles only. A bad access is a signal,
// which ends the grid.
#include "engine.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <deque>
#include <numeric>
#include <vector>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

// simSwitch saves the caller's registers on its stack, its stack in *from, and goes on with the stack to.
extern "C" void simSwitch(void **from, void *to);
#if defined(__x86_64__)
asm(R"(
	.text
	.globl simSwitch
	.hidden simSwitch
	.type simSwitch, @function
simSwitch:
	pushq %rbp
	pushq %rbx
	pushq %r12
	pushq %r13
	pushq %r14
	pushq %r15
	movq %rsp, (%rdi)
	movq %rsi, %rsp
	popq %r15
	popq %r14
	popq %r13
	popq %r12
	popq %rbx
	popq %rbp
	ret
	.size simSwitch, .-simSwitch
)");
constexpr int savedWords = 6;  // below the return address
#elif defined(__aarch64__)
asm(R"(
	.text
	.globl simSwitch
	.hidden simSwitch
	.type simSwitch, %function
simSwitch:
	sub sp, sp, #160
	stp x19, x20, [sp, #0]
	stp x21, x22, [sp, #16]
	stp x23, x24, [sp, #32]
	stp x25, x26, [sp, #48]
	stp x27, x28, [sp, #64]
	stp d8, d9, [sp, #80]
	stp d10, d11, [sp, #96]
	stp d12, d13, [sp, #112]
	stp d14, d15, [sp, #128]
	stp x29, x30, [sp, #144]
	mov x9, sp
	str x9, [x0]
	mov sp, x1
	ldp x19, x20, [sp, #0]
	ldp x21, x22, [sp, #16]
	ldp x23, x24, [sp, #32]
	ldp x25, x26, [sp, #48]
	ldp x27, x28, [sp, #64]
	ldp d8, d9, [sp, #80]
	ldp d10, d11, [sp, #96]
	ldp d12, d13, [sp, #112]
	ldp d14, d15, [sp, #128]
	ldp x29, x30, [sp, #144]
	add sp, sp, #160
	ret
	.size simSwitch, .-simSwitch
)");
#else
#error "the stand-in runs on amd64 and arm64"
#endif

namespace sim {
namespace {

constexpr size_t page = 4096;

struct Fiber {
	char *stack;
	void *saved;  // where it left off
};

enum State { Fresh, Ready, AtBlock, AtWarp, Done };

struct Thread {
	State state;
	const void *where;  // it waits
	Fiber *fiber;
	uint3 index;
	uint64_t bits;  // offered to the other lanes
	unsigned waits;  // of its warp, since the last barrier
};

// A running grid. One at a time: the driver holds its lock.
struct Run {
	const SimImage *image;
	void (*body)(void **);
	void **parameters;
	std::vector<Thread> threads;
	unsigned self, launch, block, barriers;
};
Run grid;
std::deque<Fiber> all;
std::vector<Fiber *> idle;
void *scheduler;
Fiber *current;

// AddressSanitizer wants to know which stack is in use.
#ifdef __SANITIZE_ADDRESS__
const void *callerStack;
size_t callerBytes;
void leave(void **fake, const Fiber *to) {
	if (to)
		__sanitizer_start_switch_fiber(fake, to->stack, stackBytes);
	else
		__sanitizer_start_switch_fiber(fake, callerStack, callerBytes);
}
void enter(void *fake, bool inFiber) {
	if (inFiber)
		__sanitizer_finish_switch_fiber(fake, &callerStack, &callerBytes);
	else
		__sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
}
#else
void leave(void **, const Fiber *) {}
void enter(void *, bool) {}
#endif

void toScheduler() {
	void *fake = nullptr;
	Fiber *f = current;
	leave(&fake, nullptr);
	simSwitch(&f->saved, scheduler);
	enter(fake, true);
}

extern "C" __attribute__((visibility("hidden"))) void simFiber() {
	enter(nullptr, true);
	for (;;) {
		grid.body(grid.parameters);
		grid.threads[grid.self].state = Done;
		toScheduler();
	}
}

// prime makes a fiber start with simFiber.
void prime(Fiber *f) {
	void **top = (void **)(f->stack + stackBytes);
#if defined(__x86_64__)
	*--top = nullptr;  // simFiber never returns; keeps the stack aligned
	*--top = (void *)simFiber;
	top -= savedWords;
#else
	top -= 20;
	top[19] = (void *)simFiber;
#endif
	f->saved = top;
}

Fiber *takeFiber() {
	if (!idle.empty()) {
		Fiber *f = idle.back();
		idle.pop_back();
		return f;
	}
	char *map = (char *)mmap(nullptr, page + stackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED) {
		perror("sim: stack of a thread");
		abort();
	}
	mprotect(map, page, PROT_NONE);
	Fiber *f = &all.emplace_back(Fiber{map + page, nullptr});
	prime(f);
	return f;
}

// resume runs thread i until it waits or ends.
void resume(unsigned i) {
	Thread &t = grid.threads[i];
	if (!t.fiber) t.fiber = takeFiber();
	t.state = Ready;
	grid.self = i;
	grid.image->state->thread = t.index;
	current = t.fiber;
	void *fake = nullptr;
	leave(&fake, t.fiber);
	simSwitch(&scheduler, t.fiber->saved);
	enter(fake, false);
	current = nullptr;
	if (t.state == Done) {
		idle.push_back(t.fiber);
		t.fiber = nullptr;
	}
}

// after a fault all fibers start afresh.
void abandon() {
	idle.clear();
	for (Fiber &f : all) {
#ifdef __SANITIZE_ADDRESS__
		__asan_unpoison_memory_region(f.stack, stackBytes);  // frames that were never left
#endif
		prime(&f);
		idle.push_back(&f);
	}
}

void wait(SimWait what, const void *where) {
	Thread &t = grid.threads[grid.self];
	t.state = what == SimBlock ? AtBlock : AtWarp;
	t.where = where;
	toScheduler();
}

unsigned lane() { return grid.self % 32; }

uint64_t exchange(uint64_t bits, unsigned l, const void *where) {
	unsigned self = grid.self, from = self / 32 * 32 + l % 32;
	grid.threads[self].bits = bits;
	wait(SimWarp, where);
	uint64_t got = from < grid.threads.size() ? grid.threads[from].bits : bits;
	wait(SimWarp, where);
	return got;
}

[[noreturn]] void trap() {
	raise(SIGFPE);
	abort();
}

std::string at(const char *what, unsigned i) {
	char text[200];
	const SimState &s = *grid.image->state;
	uint3 t = i < grid.threads.size() ? grid.threads[i].index : uint3{0, 0, 0};
	snprintf(text, sizeof text, "%s: block (%u,%u,%u), thread (%u,%u,%u)", what, s.block.x, s.block.y, s.block.z, t.x, t.y, t.z);
	return text;
}

// warp runs lanes [lo, hi) until each has ended or waits for its block.
std::string warp(unsigned lo, unsigned hi, unsigned &live) {
	for (;;) {
		const void *where = nullptr;
		unsigned waiting = 0, beyond = 0;
		for (unsigned i = lo; i < hi; i++) {
			Thread &t = grid.threads[i];
			if (t.state == Fresh || t.state == Ready) {
				resume(i);
				if (t.state == Done) live--;
			}
			if (t.state == AtBlock) beyond++;
			if (t.state != AtWarp) continue;
			waiting++;
			if (where && where != t.where) return at("lanes of a warp wait at different places", i);
			where = t.where;
		}
		if (!waiting) return "";
		if (beyond) return at("a warp operation that some lanes do not reach", lo);
		for (unsigned i = lo; i < hi; i++)
			if (grid.threads[i].state == AtWarp) grid.threads[i].state = Ready, grid.threads[i].waits++;
	}
}

std::string block() {
	unsigned n = grid.threads.size(), live = n;
	while (live) {
		for (unsigned lo = 0; lo < n; lo += 32) {
			std::string bad = warp(lo, lo + 32 < n ? lo + 32 : n, live);
			if (!bad.empty()) return bad;
		}
		const void *where = nullptr;
		unsigned waiting = 0;
		for (unsigned i = 0; i < n; i++) {
			Thread &t = grid.threads[i];
			if (t.state != AtBlock) continue;
			waiting++;
			if (where && where != t.where) return at("threads of a block wait at different barriers", i);
			where = t.where;
			t.state = Ready;
			t.waits = 0;
		}
		if (waiting && waiting != live) return at("a barrier that some threads do not reach", 0);
		grid.barriers++;
		checkBarrier();
	}
	return "";
}

// poison makes shared memory NaN. Sanitisers keep their own bytes between variables.
__attribute__((no_sanitize("address"))) void poison(char *from, char *to) {
	for (volatile char *p = from; p < to; p++) *p = (char)0xff;
}

// Dynamic shared memory ends at a page that can't be touched.
char *dynamicEnd() {
	static char *end = [] {
		constexpr size_t bytes = 256 << 10;
		char *map = (char *)mmap(nullptr, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (map == MAP_FAILED) abort();
		mprotect(map + bytes, page, PROT_NONE);
		return map + bytes;
	}();
	return end;
}

struct Job {
	const Grid *shape;
	std::string bad;
};

void blocks(void *p) {
	Job &job = *(Job *)p;
	const Grid &g = *job.shape;
	SimState &s = *grid.image->state;
	s.blockDim = g.threads;
	s.gridDim = g.blocks;
	size_t shared = (g.shared + 15) / 16 * 16;
	s.dynamic = dynamicEnd() - shared;
	dynamicShared = dynamicEnd() - shared;
	dynamicSharedEnd = dynamicEnd();
	grid.threads.assign((size_t)g.threads.x * g.threads.y * g.threads.z, Thread{});
	size_t total = (size_t)g.blocks.x * g.blocks.y * g.blocks.z;
	// The order of blocks changes at each launch: a stride without a common factor visits each once.
	uint64_t random = (grid.launch + 1) * 0x9e3779b97f4a7c15;
	size_t stride = 1 + (random >> 33) % total;
	while (total > 1 && std::gcd(stride, total) != 1) stride++;
	for (size_t k = 0, b = (random >> 11) % total; k < total; k++, b = (b + stride) % total) {
		grid.block = b;
		grid.barriers = 0;
		s.block = {(unsigned)(b % g.blocks.x), (unsigned)(b / g.blocks.x % g.blocks.y), (unsigned)(b / ((size_t)g.blocks.x * g.blocks.y))};
		poison(grid.image->shared, grid.image->sharedEnd);
		poison(dynamicEnd() - shared, dynamicEnd());
		for (unsigned i = 0; i < grid.threads.size(); i++)
			grid.threads[i] = {Fresh, nullptr, nullptr, {i % g.threads.x, i / g.threads.x % g.threads.y, i / (g.threads.x * g.threads.y)}, 0, 0};
		job.bad = block();
		if (!job.bad.empty()) return;
	}
}

// Faults.
constexpr int signals[] = {SIGSEGV, SIGBUS, SIGFPE};
struct sigaction before[3];
sigjmp_buf escape;
pthread_t runner;
volatile bool running;
volatile int caught;
void *volatile caughtAt;

void onSignal(int sig, siginfo_t *info, void *context) {
	if (running && pthread_equal(pthread_self(), runner)) {
		if (sig == SIGSEGV && touch(info->si_addr)) return;
		caught = sig;
		caughtAt = info->si_addr;
#ifdef __SANITIZE_ADDRESS__
		if (current) leave(nullptr, nullptr);
#endif
		siglongjmp(escape, 1);
	}
	// A fault of another thread goes to the previous handler, Go's.
	for (int i = 0; i < 3; i++) {
		if (signals[i] != sig) continue;
		if (before[i].sa_flags & SA_SIGINFO) {
			before[i].sa_sigaction(sig, info, context);
		} else if (before[i].sa_handler != SIG_DFL && before[i].sa_handler != SIG_IGN) {
			before[i].sa_handler(sig);
		} else {
			signal(sig, SIG_DFL);
		}
	}
}

}  // namespace

char *dynamicShared, *dynamicSharedEnd;

const SimEngine engine = {wait, exchange, lane, trap, checkAccess, checkAtomic, checkFence};

Here here() {
	return {grid.image, grid.launch, grid.block, grid.self, grid.barriers, grid.threads[grid.self].waits, current ? current->stack : nullptr};
}

static std::string refused;

[[noreturn]] void refuse(const std::string &why) {
	refused = why;
	trap();
}

std::string guarded(void (*f)(void *), void *argument) {
	struct sigaction action = {};
	action.sa_sigaction = onSignal;
	action.sa_flags = SA_SIGINFO | SA_ONSTACK;
	sigfillset(&action.sa_mask);
	for (int i = 0; i < 3; i++) sigaction(signals[i], &action, &before[i]);
	std::string bad;
	runner = pthread_self();
	current = nullptr;
	if (sigsetjmp(escape, 1) == 0) {
		running = true;
		f(argument);
		running = false;
	} else {
		running = false;
		reopen();
		if (current) enter(nullptr, false);
		bad = !refused.empty() ? refused : caught == SIGFPE ? "an arithmetic trap" : "illegal address " + describe(caughtAt);
		refused.clear();
	}
	current = nullptr;
	for (int i = 0; i < 3; i++) sigaction(signals[i], &before[i], nullptr);
	return bad;
}

std::string run(const SimImage *image, const SimKernel *kernel, const Grid &shape, void **parameters) {
	grid.image = image;
	grid.body = kernel->body;
	grid.parameters = parameters;
	grid.self = 0;
	grid.launch++;
	Job job{&shape, ""};
	std::string bad = guarded(blocks, &job);
	if (!bad.empty())
		bad = at(bad.c_str(), grid.self);
	else
		bad = job.bad;
	if (!bad.empty()) {
		abandon();
		bad = std::string("kernel ") + kernel->name + ": " + bad;
	}
	return bad;
}

}  // namespace sim
