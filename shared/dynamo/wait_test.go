package dynamo

import (
	"context"
	"testing"
	"time"
)

func noSleep(context.Context, time.Duration) error { return nil }

func recordWaits(waits *[]time.Duration) func(context.Context, time.Duration) error {
	return func(_ context.Context, d time.Duration) error {
		*waits = append(*waits, d)
		return nil
	}
}

// checkWaits checks that rounds wait a jittered time under a bound that doubles.
func checkWaits(t *testing.T, waits []time.Duration) {
	t.Helper()
	if len(waits) != maxRounds-1 {
		t.Errorf("%d waits, want %d", len(waits), maxRounds-1)
	}
	for i, wait := range waits {
		if bound := firstWait << i; wait < 0 || wait > min(bound, maxWait) {
			t.Errorf("wait %d lasts %v, want at most %v", i, wait, bound)
		}
	}
}

func TestWait_NeverExceedsItsBound(t *testing.T) {
	var waits []time.Duration
	l := link{sleep: recordWaits(&waits)}
	for _, round := range []int{1, 2, 7, 8, 64, 1 << 30} {
		for range 200 {
			if err := l.wait(t.Context(), round); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, wait := range waits {
		if wait < 0 || wait > maxWait {
			t.Fatalf("wait of %v", wait)
		}
	}
}

func TestWait_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l := link{sleep: sleep}
	for _, round := range []int{0, 1} {
		if err := l.wait(ctx, round); err != context.Canceled && round == 0 {
			t.Errorf("round %d: %v", round, err)
		}
	}
	if err := sleep(ctx, time.Hour); err != context.Canceled {
		t.Errorf("sleep: %v", err)
	}
}
