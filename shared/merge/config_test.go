package merge_test

import (
	"strings"
	"testing"
	"time"

	"abacus/shared/merge"
	"abacus/shared/merge/mergetest"
)

func TestP25_Defaults(t *testing.T) {
	c, err := merge.Complete(merge.Config{Store: mergetest.New(t)})
	if err != nil {
		t.Fatal(err)
	}
	if c.Attempts != 3 || c.Backoff != 50*time.Millisecond || c.BackoffCap != 5*time.Second || c.Recorder == nil ||
		c.Workers != 16 || c.Slots != 8 || c.Horizon != 35*24*time.Hour || c.Cache != nil {
		t.Errorf("defaults %+v", c)
	}
	if a, b := c.NewToken(), c.NewToken(); a == b || len(a) < 22 || len(a) > 36 {
		t.Errorf("tokens %q and %q", a, b)
	}
}

func TestConfig_EveryFaultIsReportedAtOnce(t *testing.T) {
	var none *mergetest.Store
	_, err := merge.New(merge.Config{
		Store: none, Attempts: -1, Contended: -1, Workers: -1, Slots: 257, ChunkEvents: -1, Backoff: -1, BackoffCap: -1,
		CallTimeout: -1, Timeout: -1, LeaseMargin: -1, Horizon: time.Minute, ReserveRelease: -1, CacheWait: -1,
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, field := range []string{"Store", "Attempts", "Contended", "Workers", "Slots", "ChunkEvents", "Backoff",
		"BackoffCap", "CallTimeout", "Timeout", "LeaseMargin", "Horizon", "ReserveRelease", "CacheWait"} {
		if !strings.Contains(err.Error(), field+" is ") {
			t.Errorf("%s is not among the faults:\n%v", field, err)
		}
	}
}

func TestConfig_LimitsAndOnePast(t *testing.T) {
	for name, set := range map[string]func(*merge.Config, int){
		"Slots": func(c *merge.Config, past int) { c.Slots = merge.MaxSlots + past },
		"Horizon": func(c *merge.Config, past int) {
			c.Horizon = merge.MinHorizon - time.Duration(past)
		},
		"Workers": func(c *merge.Config, past int) { c.Workers = 1 - 2*past },
	} {
		for past, wantErr := range []bool{false, true} {
			c := merge.Config{Store: mergetest.New(t)}
			set(&c, past)
			if _, err := merge.New(c); (err != nil) != wantErr {
				t.Errorf("%s, %d past its limit: %v", name, past, err)
			}
		}
	}
}

func TestConfig_TheUnsetBackoffFollowsTheOther(t *testing.T) {
	store := mergetest.New(t)
	for _, tt := range []struct{ base, limit, wantBase, wantLimit time.Duration }{
		{0, 10 * time.Millisecond, 10 * time.Millisecond, 10 * time.Millisecond},
		{time.Minute, 0, time.Minute, time.Minute},
		{1, 1, 1, 1},
	} {
		c, err := merge.Complete(merge.Config{Store: store, Backoff: tt.base, BackoffCap: tt.limit})
		if err != nil || c.Backoff != tt.wantBase || c.BackoffCap != tt.wantLimit {
			t.Errorf("Backoff %v, BackoffCap %v become %v, %v, %v", tt.base, tt.limit, c.Backoff, c.BackoffCap, err)
		}
	}
	if _, err := merge.New(merge.Config{Store: store, Backoff: 2, BackoffCap: 1}); err == nil {
		t.Error("a cap below the first wait passed")
	}
}

func TestConfig_NilInsideAnInterfaceIsNil(t *testing.T) {
	var recorder *heard
	var cache *gains
	c, err := merge.Complete(merge.Config{Store: mergetest.New(t), Recorder: recorder, Cache: cache})
	if err != nil || c.Cache != nil {
		t.Fatalf("cache %v, %v", c.Cache, err)
	}
	c.Recorder.Count("x", 1, nil) // must not panic
}
