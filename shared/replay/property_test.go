package replay

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"abacus/shared/local/stream"
	"abacus/shared/local/wire"
	"abacus/shared/merge/mergetest"

	"pgregory.net/rapid"
)

// TestReplay_UnderFaultsALetterGoesOnlyWhenAllOfItIsCountedOrParked plays letters of every form over one shard, again and
// again, while Kinesis throttles, expires iterators and breaks, the store breaks before and after it applied, and the park
// queue is full. Then all heals. Whatever was deleted must have been counted or parked by then, nothing may count twice,
// and all letters must go in the end.
func TestReplay_UnderFaultsALetterGoesOnlyWhenAllOfItIsCountedOrParked(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		bad := rapid.SliceOfN(rapid.Bool(), 3, 9).Draw(rt, "bad records")
		rounds := rapid.IntRange(1, 4).Draw(rt, "rounds of faults")
		faults := rapid.SliceOfN(rapid.IntRange(0, 9), 40, 40).Draw(rt, "faults")
		page := rapid.Int32Range(1, 4).Draw(rt, "page")
		next := func() int {
			if len(faults) == 0 {
				return 9
			}
			defer func() { faults = faults[1:] }()
			return faults[0]
		}
		synctest.Test(t, func(t *testing.T) {
			s := newShard(t, stream.Config{})
			o := newOffice(t, func(c *Config) { c.Reader = &Reader{Shards: &paged{shard: s, size: page}} })
			payloads, want := []string{}, map[string]bool{}
			for i, b := range bad {
				payloads = append(payloads, fmt.Sprintf(`{"key":"k%d"}`, i))
				if want[fmt.Sprint("k", i)] = !b; b {
					payloads[i] = fmt.Sprint("bad ", i)
				}
			}
			s.put(t, payloads...)
			letters := lettersOf(t, s, payloads)
			s.fault = func(string) wire.Fault {
				if code := []string{"ProvisionedThroughputExceededException", "ExpiredIteratorException", "InternalFailure",
					"AccessDeniedException"}; next() < len(code) {
					return wire.Fault{Before: wire.Errorf(code[next()%len(code)], "no")}
				}
				return wire.Fault{}
			}
			o.store.Fault = func(mergetest.Call) mergetest.Fault {
				switch next() {
				case 0:
					return mergetest.Fault{Err: mergetest.ErrDenied}
				default:
					return mergetest.Fault{}
				}
			}
			for range rounds {
				o.again.full = nil
				if next() < 5 {
					o.again.full = errors.New("full")
				}
				letters = deliver(t, o, letters)
			}
			s.fault, o.store.Fault, o.again.full = nil, nil, nil
			time.Sleep(time.Hour) // past every lease
			if letters = deliver(t, o, letters); len(letters) > 0 {
				t.Fatalf("%d letters stay: %s", len(letters), o.log)
			}
			audit(t, o, payloads, want)
		})
	})
}

// lettersOf is one letter of each form about the same records of a shard.
func lettersOf(t *testing.T, s *shard, payloads []string) []Message {
	t.Helper()
	all := s.rng(1, len(payloads))
	return []Message{message(noticeText(all, "")), message(noticeText(s.rng(2, 3), "")), message(noticeText(all, ""))}
}

// deliver replays letters, each with a deadline, and returns those that stay.
func deliver(t *testing.T, o *office, letters []Message) (stay []Message) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for i, r := range o.Handle(ctx, letters) {
		if r.Delete == (r.Err != nil) || r.Delete && r.Counts.Failed+r.Counts.Bad > 0 || r.Lost != nil {
			t.Errorf("%+v", r)
		}
		if !r.Delete {
			stay = append(stay, letters[i])
		}
	}
	return stay
}

// audit holds counts and parked documents against the truth.
func audit(t *testing.T, o *office, payloads []string, want map[string]bool) {
	t.Helper()
	parked := map[string]bool{}
	for _, document := range o.again.documents {
		letter, err := Queues{}.Open(message(document))
		if err != nil {
			t.Fatal(err)
		}
		parked[string(letter.Parked.Payload)] = true
	}
	for i, payload := range payloads {
		key := fmt.Sprint("k", i)
		if count := o.total(key); want[key] != (count == "1") || !want[key] && count != "0" {
			t.Errorf("record %d counts %s times", i, count)
		}
		if strings.HasPrefix(payload, "bad") != parked[payload] {
			t.Errorf("record %d parked: %t", i, parked[payload])
		}
	}
}
