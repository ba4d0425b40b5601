package dynamo

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"abacus/shared/merge"
	"abacus/shared/tally"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Every request as it goes over the wire: table and attribute names, key formats, value types, conditions. Rows with
// these names and formats are in users' tables, so a change here is a change of the stored format.
func TestWire_RequestsAreTheSpecification(t *testing.T) {
	s := &script{replies: map[string][]reply{
		"BatchExecuteStatement": {{}, {body: `{"Responses":[{"Error":{"Code":"DuplicateItem"}}]}`}},
	}}
	o := scripted(t, s)
	now := time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)
	o.Now, o.Parallel = func() time.Time { return now }, 1
	store, reader := storeOn(t, o), readerOn(t, o)
	o.SingleClaims = true
	single := storeOn(t, o)
	ctx := t.Context()

	claim := merge.Claim{
		Event: "order-17", Token: "TOKEN", Lease: now.Add(1500 * time.Microsecond), Expires: now.Add(35 * 24 * time.Hour),
		Serial: "stream/shardId-000000000001",
	}
	bare := merge.Claim{Event: "\xff|é", Token: "TOKEN", Lease: now, Expires: now.Add(time.Hour)}
	store.PutClaims(ctx, []merge.Claim{claim, bare})
	store.PutClaims(ctx, []merge.Claim{claim}) // a duplicate whose row must be looked up
	single.PutClaims(ctx, []merge.Claim{claim})
	_, _ = store.TakeClaim(ctx, claim, "OLD")
	_, _ = store.FindRecord(ctx, "TOKEN")
	_, _ = store.Abort(ctx, "TOKEN", now.Add(36*24*time.Hour))
	_, _ = store.Commit(ctx, merge.Attempt{
		Token: "TOKEN", Except: []string{"b", "a", "\xff"}, Expires: now.Add(36 * 24 * time.Hour),
		Adds: []merge.SlottedAdd{
			{Cell: tally.Cell{Counter: "flights", Key: "origin/ABE", Window: "1h", Bucket: now.Unix() / 3600 * 3600},
				Delta: tally.SumOf(17), Expires: 1768000000, Slot: 3},
			{Cell: tally.Cell{Counter: "flights", Key: "a|b", Window: "all"}, Delta: tally.SumOf(-2)},
		},
	})
	_ = store.Release(ctx, "order-17", "TOKEN")
	move := merge.Move{
		Cell:   tally.Cell{Counter: "flights", Key: "origin/ABE", Window: "1h", Bucket: now.Unix() / 3600 * 3600},
		Serial: "stream|shardId-000000000001", Delta: tally.SumOf(17), Expires: 1768000000, Below: "00217", Last: "00242",
	}
	_, _, _ = store.Advance(ctx, move)
	move.Cell, move.Expires, move.Below, move.At = tally.Cell{Counter: "flights", Key: "a|b", Window: "all"}, 0, "", "00217"
	_, _, _ = store.Advance(ctx, move)
	_, _ = reader.Get(ctx, tally.Cell{Counter: "flights", Key: "a|b", Window: "all"})
	_, _ = reader.Window(ctx, "flights", "all", "1d")
	_, _ = reader.Range(ctx, "flights", "all", "1d", 1767225600, 1767312000)

	requests := s.seen()
	for i := range requests {
		if token, ok := requests[i].Body["ClientRequestToken"].(string); ok {
			if len(token) == 0 || len(token) > 36 {
				t.Errorf("a request token of %d characters; 1 to 36 are allowed", len(token))
			}
			requests[i].Body["ClientRequestToken"] = "(fresh)"
		}
	}
	golden(t, "wire.json", requests)
}

func golden(t *testing.T, name string, value any) {
	t.Helper()
	got := &bytes.Buffer{}
	encoder := json.NewEncoder(got)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("requests differ from %s; if that is meant, run this with -update and say so in the change.\n%s", path, got)
	}
}
