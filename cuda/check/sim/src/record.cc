// Records of launches, which package ptx runs again with the output of NVIDIA's compiler for the same source. Of each
// kernel the first launch of each kind is recorded. A kind is a set of facts that the kernel may branch by: null or
// aligned pointers, integers that are 0 or multiples, one block or more.
//
// A record is lines of text, an empty line, and the memory that its parameters, and pointers in that memory, lead to,
// by chunks: where it is in the block, how long, and the bytes, before the launch and, where they changed, after it.
// Memory without a chunk is all ones: nobody wrote it. HASH.cu is the source, its options in the first line.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine.h"
#include "sim.h"

namespace sim {
namespace {

constexpr size_t granule = 64, most = 8 << 20;  // bytes of a chunk at least, of memory of a record at most
constexpr size_t threadsMost = 1 << 17;
constexpr size_t kindsMost = 32;  // of launches of a kernel

uint64_t hash(const std::string &s) {
	uint64_t h = 0xcbf29ce484222325;
	for (unsigned char c : s) h = (h ^ c) * 0x100000001b3;
	return h;
}

std::string hex(const void *p, size_t n) {
	std::string s;
	char two[3];
	for (size_t i = 0; i < n; i++) {
		snprintf(two, sizeof two, "%02x", ((const unsigned char *)p)[i]);
		s += two;
	}
	return s;
}

bool isPointer(char type) { return type != '-' && type != '.'; }

// A Block is an allocation that the launch may reach.
struct Block {
	uintptr_t at;
	std::string before;
};

// reach lists the blocks that the parameters lead to; none when they are too large.
std::vector<Block> reach(const SimKernel *k, void **parameters) {
	std::vector<Block> found;
	std::set<uintptr_t> known;
	size_t total = 0;
	auto follow = [&](uintptr_t p) {
		uintptr_t from, to;
		if (p < 1 << 16 || !blockAt((void *)p, &from, &to) || !known.insert(from).second) return;
		total += to - from;
		if (total > most) return;
		touch((void *)from);
		found.push_back({from, std::string((const char *)from, to - from)});
	};
	for (unsigned i = 0; i < k->parameters; i++)
		if (isPointer(k->types[i])) follow(*(uintptr_t *)parameters[i]);
	for (size_t i = 0; i < found.size() && total <= most; i++)
		for (size_t at = (8 - found[i].at % 8) % 8; at + 8 <= found[i].before.size(); at += 8) {
			uintptr_t p;
			memcpy(&p, found[i].before.data() + at, 8);
			if (p >> 40 == found[i].at >> 40) follow(p);
		}
	if (total > most) found.clear();
	return found;
}

// chunks appends the granules of now that are not those of before.
size_t chunks(std::string &to, const std::string &before, const char *now) {
	size_t count = 0;
	auto differs = [&](size_t at) { return memcmp(before.data() + at, now + at, std::min(granule, before.size() - at)) != 0; };
	for (size_t at = 0; at < before.size();) {
		size_t from = at;
		while (at < before.size() && differs(at)) at += granule;
		if (at > from) {
			uint64_t head[2] = {from, std::min(at, before.size()) - from};
			to.append((const char *)head, sizeof head).append(now + from, head[1]);
			count++;
		}
		at += granule;
	}
	return count;
}

void write(const std::string &path, const std::string &text) {
	std::string part = path + "." + std::to_string(getpid());
	FILE *f = fopen(part.c_str(), "wb");
	if (!f) return;
	bool ok = fwrite(text.data(), 1, text.size(), f) == text.size();
	if ((fclose(f) != 0) | !ok || rename(part.c_str(), path.c_str())) unlink(part.c_str());
}

}  // namespace

std::string recorded(const std::string &source, const SimImage *image, const SimKernel *k, const Grid &g, void **parameters) {
	const char *folder = getenv("RNA_SIM_RECORD");
	size_t threads = (size_t)g.blocks.x * g.blocks.y * g.blocks.z * g.threads.x * g.threads.y * g.threads.z;
	if (!folder || !*folder || threads > threadsMost) return run(image, k, g, parameters);

	char line[400], name[100];
	snprintf(name, sizeof name, "%016llx", (unsigned long long)hash(source));
	snprintf(line, sizeof line, "source %s\nkernel %s\ntypes %s|\ngrid %u %u %u\nblock %u %u %u\nshared %zu\n", name, k->name, k->types, g.blocks.x,
	         g.blocks.y, g.blocks.z, g.threads.x, g.threads.y, g.threads.z, g.shared);
	std::string head = line, kind;
	bool aligned = true;
	for (unsigned i = 0; i < k->parameters; i++) {
		head += "parameter " + hex(parameters[i], k->sizes[i]) + "\n";
		uintptr_t p = 0;
		memcpy(&p, parameters[i], std::min(k->sizes[i], sizeof p));
		bool pointer = isPointer(k->types[i]);
		kind += !p ? '0' : k->types[i] != '-' ? 'x' : p % 8 == 0 ? '8' : p % 4 == 0 ? '4' : '1';
		if (pointer) aligned = aligned && p % 16 == 0;
		if (i == 0) kind += aligned ? 'a' : 'u';
	}
	kind += aligned ? 'a' : 'u';
	for (unsigned n : {g.blocks.x, g.blocks.y, g.blocks.z}) kind += n > 1 ? 'm' : '1';
	static std::map<std::string, std::set<std::string>> kinds;  // by source and kernel
	std::set<std::string> &seen = kinds[std::string(name) + k->name];
	std::string base = std::string(folder) + "/" + name, path = base + "-" + k->name + "-";
	if (seen.size() >= kindsMost || !seen.insert(kind).second) return run(image, k, g, parameters);
	snprintf(line, sizeof line, "%016llx.launch", (unsigned long long)hash(kind));
	path += line;
	std::vector<Block> blocks;
	if (access(path.c_str(), F_OK) || access((base + ".cu").c_str(), F_OK)) blocks = reach(k, parameters);
	if (blocks.empty()) {
		seen.erase(kind);
		return run(image, k, g, parameters);
	}

	std::string bad = run(image, k, g, parameters);
	if (!bad.empty()) return bad;
	std::string data;
	for (const Block &b : blocks) {
		size_t written = chunks(data, std::string(b.before.size(), (char)0xff), b.before.data()), changed = chunks(data, b.before, (const char *)b.at);
		snprintf(line, sizeof line, "memory %zx %zu %zu %zu\n", (size_t)b.at, b.before.size(), written, changed);
		head += line;
	}
	if (access((base + ".cu").c_str(), F_OK)) write(base + ".cu", source);
	write(path, head + "\n" + data);
	return bad;
}

}  // namespace sim
