package table

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The rows behave like a sorted map, whatever their number and the order in which they come and go.
func TestRows_BehaveLikeASortedMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r rows
		model := make(map[string]Item)
		place := rapid.Custom(func(t *rapid.T) string {
			return string(rapid.SliceOfN(rapid.ByteRange('a', 'e'), 0, 4).Draw(t, "place"))
		})
		for range rapid.IntRange(0, 3).Draw(t, "runs in order") {
			prefix := place.Draw(t, "prefix")
			for i := range rapid.IntRange(0, 2*chunkSize).Draw(t, "length") {
				p := prefix + string([]byte{byte('a' + i/26/26), byte('a' + i/26%26), byte('a' + i%26)})
				r.set(p, Item{"p": textValue(p)})
				model[p] = Item{"p": textValue(p)}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				p := place.Draw(t, "p")
				item := Item{"p": numberOf(rapid.IntRange(0, 9).Draw(t, "n"))}
				r.set(p, item)
				model[p] = item
			},
			"remove": func(t *rapid.T) {
				p := place.Draw(t, "p")
				r.set(p, nil)
				delete(model, p)
			},
			"get": func(t *rapid.T) {
				p := place.Draw(t, "p")
				if !r.get(p).equal(model[p]) || (r.get(p) == nil) != (model[p] == nil) {
					t.Fatalf("%q: %v, want %v", p, r.get(p), model[p])
				}
			},
			"walk": func(t *rapid.T) {
				low, high := place.Draw(t, "low"), place.Draw(t, "high")
				var want []string
				for _, p := range slices.Sorted(maps.Keys(model)) {
					if p >= low && (high == "" || p < high) {
						want = append(want, p)
					}
				}
				walk := func(forward bool) (got []string) {
					for w := range r.between(low, high, forward) {
						got = append(got, w.place)
					}
					return got
				}
				if got := walk(true); !slices.Equal(got, want) {
					t.Fatalf("up from %q to %q: %q, want %q", low, high, got, want)
				}
				slices.Reverse(want)
				if got := walk(false); !slices.Equal(got, want) {
					t.Fatalf("down from %q to %q: %q, want %q", high, low, got, want)
				}
			},
			"": func(t *rapid.T) {
				if r.count != len(model) {
					t.Fatalf("%d rows, want %d", r.count, len(model))
				}
				for _, c := range r.chunks {
					if len(c) == 0 || len(c) > chunkSize {
						t.Fatalf("a chunk of %d", len(c))
					}
				}
			},
		})
	})
}

// Walking may stop at any row.
func TestRows_WalkStopsWhenAsked(t *testing.T) {
	var r rows
	for _, p := range []string{"a", "b", "c"} {
		r.set(p, Item{})
	}
	for _, forward := range []bool{true, false} {
		n := 0
		for range r.between("", "", forward) {
			n++
			break
		}
		if n != 1 {
			t.Errorf("forward %t: %d rows", forward, n)
		}
	}
}
