package env

import "runtime/debug"

// memoryLimit keeps a function that is handed batches of 6 MB, the most that Lambda sends, within 64 MiB resident.
// Without it the collector lets the heap double, and a warm function reaches 88 MiB; at 40 MiB it would take a third more
// processor time, at this limit 7 % for such batches, and nothing for the small ones that never come near it.
const memoryLimit = 48 << 20

// LimitMemory sets the limit at which the garbage collector works harder, unless GOMEMLIMIT sets another. The limit is
// soft: a batch that needs more gets it, with up to half of the processor's time spent on collecting.
func LimitMemory(getenv func(string) string) {
	if getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
}
