// Faults on demand, and the count of what waits for its release.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vector>

#include "sim.h"

namespace sim {

std::recursive_mutex lock;

namespace {

struct Fault {
	std::string function;  // or *
	unsigned long long at; // its call, 0 for each
	int code;
	bool later, sticky;
	unsigned long long seen;
};
std::vector<Fault> faults;
int dead;  // the code of a sticky fault that fired
bool started;
std::map<std::string, unsigned long long> calls;
std::map<std::string, long> live;

// parse reads FUNCTION@K=CODE[,later][,sticky][;…].
bool parse(const char *text, std::vector<Fault> &out) {
	std::string all = text ? text : "";
	for (size_t from = 0; from < all.size();) {
		size_t to = all.find(';', from);
		if (to == std::string::npos) to = all.size();
		std::string one = all.substr(from, to - from);
		from = to + 1;
		char name[100], rest[100] = "";
		Fault f{};
		int used = 0;
		if (sscanf(one.c_str(), "%99[A-Za-z0-9_*]@%llu=%d%n%99s", name, &f.at, &f.code, &used, rest) < 3 || f.code == 0) return false;
		f.function = name;
		for (char *word = strtok(rest, ","); word; word = strtok(nullptr, ",")) {
			if (!strcmp(word, "later"))
				f.later = true;
			else if (!strcmp(word, "sticky"))
				f.sticky = true;
			else
				return false;
		}
		out.push_back(f);
	}
	return true;
}

// fatal says whether a context does not live on after an error.
bool fatal(int code) { return code == 214 || code == 220 || code == 700 || code == 702 || (code >= 709 && code <= 719) || code == 999; }

void start() {
	if (started) return;
	started = true;
	if (!parse(getenv("RNA_SIM_FAULT"), faults)) {
		fprintf(stderr, "sim: RNA_SIM_FAULT: want FUNCTION@K=CODE[,later][,sticky][;…]\n");
		exit(2);
	}
}

}  // namespace

long setting(const char *name, long fallback) {
	const char *text = getenv(name);
	return text && *text ? atol(text) : fallback;
}
int deviceCount() { return setting("RNA_SIM_DEVICES", 1); }
size_t deviceBytes() { return setting("RNA_SIM_MEMORY", 1l << 30); }
int capability() { return setting("RNA_SIM_ARCH", 90); }

CUresult fail(CUcontext c, CUresult code, const std::string &why) {
	if (c && !c->dead) {
		c->dead = code;
		fprintf(stderr, "sim: %s\n", why.c_str());
	}
	return code;
}

}  // namespace sim

using namespace sim;

int simEnter(const char *function) {
	std::lock_guard<std::recursive_mutex> held(lock);
	start();
	calls[function]++;
	calls[""]++;
	if (dead) return dead;
	bool driver = strncmp(function, "cu", 2) == 0 && strncmp(function, "cublas", 6) != 0 && strncmp(function, "cudnn", 5) != 0;
	for (Fault &f : faults) {
		if (f.function != function && !(f.function == "*" && driver)) continue;
		f.seen++;
		if (f.at != 0 && f.seen != f.at) continue;
		if (f.later) {
			if (current && !current->dead) current->pending = (CUresult)f.code;
			continue;
		}
		if (f.sticky) dead = f.code;
		if (current && driver && fatal(f.code) && !current->dead) current->dead = (CUresult)f.code;
		return f.code;
	}
	return 0;
}

int simDead() { return dead; }

int simFault(const char *plan) {
	std::lock_guard<std::recursive_mutex> held(lock);
	start();
	std::vector<Fault> next;
	if (!parse(plan, next)) return 1;
	faults = next;
	dead = 0;
	return 0;
}

void simLive(const char *kind, int change) {
	std::lock_guard<std::recursive_mutex> held(lock);
	live[kind] += change;
}

void simHandle(const char *kind, CUcontext *owner, int change) {
	std::lock_guard<std::recursive_mutex> held(lock);
	if (change > 0) *owner = current;
	if (!known(contexts, *owner)) return;  // it went with its context
	(*owner)->handles[kind] += change;
	live[kind] += change;
}

const char *simLeaks() {
	std::lock_guard<std::recursive_mutex> held(lock);
	static std::string text;
	text.clear();
	for (auto &[kind, n] : live)
		if (n) text += (text.empty() ? "" : ", ") + std::to_string(n) + " " + kind;
	return text.c_str();
}

unsigned long long simCalls(const char *function) {
	std::lock_guard<std::recursive_mutex> held(lock);
	return calls[function];
}
