package env

import (
	"runtime/debug"
	"testing"
)

func TestLimitMemory_YieldsToTheRuntimesOwnSetting(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	LimitMemory(func(string) string { return "1GiB" })
	if got := debug.SetMemoryLimit(-1); got != before {
		t.Errorf("with GOMEMLIMIT the limit is %d, want it left at %d", got, before)
	}
	LimitMemory(func(string) string { return "" })
	if got := debug.SetMemoryLimit(-1); got != memoryLimit {
		t.Errorf("the limit is %d, want %d", got, int64(memoryLimit))
	}
}
