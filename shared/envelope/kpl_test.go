package envelope

import (
	"bytes"
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"abacus/shared/tally"

	"pgregory.net/rapid"
)

func b64(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// What follows writes Protocol Buffers by hand, so that writer and reader share nothing.

func varint(n uint64) string {
	var out []byte
	for ; n > 0x7f; n >>= 7 {
		out = append(out, byte(n)|0x80)
	}
	return string(append(out, byte(n)))
}

func numeral(field int, n uint64) string { return varint(uint64(field)<<3) + varint(n) }

func field(field int, value string) string {
	return varint(uint64(field)<<3|2) + varint(uint64(len(value))) + value
}

func record(key uint64, data string) string { return field(3, numeral(1, key)+field(3, data)) }

// sealed makes an aggregated record of a message.
func sealed(message string) string {
	sum := md5.Sum([]byte(message))
	return "\xf3\x89\x9a\xc2" + message + string(sum[:])
}

func aggregateOf(data ...string) string {
	message := field(1, "key")
	for _, d := range data {
		message += record(0, d)
	}
	return sealed(message)
}

func kplVectors(t testing.TB) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "kpl.txt"))
	if err != nil {
		t.Fatal(err)
	}
	vectors := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, digits, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name != "#" {
			data, err := hex.DecodeString(digits)
			if err != nil {
				t.Fatal(err)
			}
			vectors[name] = string(data)
		}
	}
	return vectors
}

func TestKPL_TheVectorOfTheFormatsOwnLibraryIsRead(t *testing.T) {
	const vector = "f3899ac20a01610a01621a0508001a01781a0608011a02797a6fe1bc1407aabc41e3e0c88f3f668baf"
	raw, err := hex.DecodeString(vector)
	if err != nil {
		t.Fatal(err)
	}
	got, err := aggregated(raw[4:len(raw)-16], raw[len(raw)-16:], 10)
	if err != nil || len(got) != 2 || string(got[0]) != "x" || string(got[1]) != "yz" {
		t.Errorf("%q, %v", got, err)
	}
	if sealed(field(1, "a")+field(1, "b")+record(0, "x")+record(1, "yz")) != string(raw) {
		t.Error("this test's own writer disagrees with the vector")
	}
}

func TestKPL_WhatOtherImplementationsWriteIsRead(t *testing.T) {
	counting := func(from, to int) (all []string) {
		for i := from; i < to; i++ {
			all = append(all, fmt.Sprintf(`{"n":%d}`, i))
		}
		return all
	}
	events := []string{`{"id":"e1","key":"a","delta":1}`, `{"id":"e2","key":"b","delta":2}`}
	vectors := kplVectors(t)
	for name, want := range map[string][]string{"npm-two": events, "npm-one": events[:1], "npm-hashed": counting(1, 5),
		"npm-many": counting(0, 40), "python": counting(0, 6)} {
		if got, err := docs(NewOpener(tally.DefaultEnvelopes), vectors[name]); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
	if len(vectors) != 5 {
		t.Errorf("%d vectors, want 5", len(vectors))
	}
}

func TestKPL_EachInnerDocumentHasItsPlaceInTheWholeRecord(t *testing.T) {
	payload := aggregateOf(`{"n":0}`, "{\"n\":1}\n{\"n\":2}", gzipped(`[{"n":3},{"n":4}]`), `[]`, `{"n":5}`)
	found, _, err := opened(NewOpener(tally.DefaultEnvelopes), payload)
	if err != nil || len(found) != 6 {
		t.Fatalf("%d documents, %v", len(found), err)
	}
	for i, d := range found {
		want := "s|shard|7"
		if i > 0 {
			want = fmt.Sprintf("s|shard|7#%d", i)
		}
		if got := d.Identity("s", "s|shard|7"); got != want || string(d.JSON) != fmt.Sprintf(`{"n":%d}`, i) {
			t.Errorf("document %d: %s as %s", i, d.JSON, got)
		}
	}
}

func TestKPL_UnknownFieldsTagsAndTablesBehindAreRead(t *testing.T) {
	tag := field(4, field(1, "k")+field(2, "v"))
	for name, message := range map[string]string{
		"tags":           field(1, "k") + field(3, numeral(1, 0)+field(3, "{}")+tag),
		"table behind":   record(0, "{}") + field(1, "k"),
		"hash key":       field(1, "k") + field(2, "7") + field(3, numeral(1, 0)+numeral(2, 0)+field(3, "{}")),
		"unknown fields": field(1, "k") + numeral(9, 5) + field(10, "x") + varint(11<<3|1) + "12345678" + record(0, "{}"),
	} {
		if got, err := docs(NewOpener(tally.DefaultEnvelopes), sealed(message)); err != nil || len(got) != 1 {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if got, err := docs(NewOpener(tally.DefaultEnvelopes), sealed(field(1, "k"))); err != nil || len(got) != 0 {
		t.Errorf("an aggregate of nothing: %q, %v", got, err)
	}
}

func TestKPL_ABadAggregateIsABadRecordAndGivesNoDocument(t *testing.T) {
	good := aggregateOf("{}", "{}")
	bad := map[string]string{
		"magic alone": "\xf3\x89\x9a\xc2", "no message": good[:20], "empty message": sealed(""),
		"index past the table": sealed(field(1, "k") + record(1, "{}")), "no table": sealed(record(0, "{}")),
		"largest index":   sealed(field(1, "k") + record(1<<63, "{}")),
		"hash key index":  sealed(field(1, "k") + field(3, numeral(1, 0)+numeral(2, 0)+field(3, "{}"))),
		"no index":        sealed(field(1, "k") + field(3, field(3, "{}"))),
		"no data":         sealed(field(1, "k") + field(3, numeral(1, 0))),
		"record a number": sealed(field(1, "k") + numeral(3, 5)), "index a text": sealed(field(1, "k") + field(3, field(1,
			"0")+field(3, "{}"))),
		"length past the end": sealed(field(1, "k") + "\x1a\x7f"), "field zero": sealed("\x00\x00" + record(0, "{}")),
		"second record bad": sealed(field(1, "k") + record(0, "{}") + record(7, "{}")),
		"inner not JSON":    aggregateOf("{}", "x"), "inner empty": aggregateOf("{}", ""),
		"within itself": aggregateOf(aggregateOf(aggregateOf(aggregateOf(aggregateOf("{}"))))),
	}
	for i := range len(good) - 4 {
		flipped := []byte(good)
		flipped[i+4] ^= 0x10
		bad[fmt.Sprintf("byte %d flipped", i+4)] = string(flipped)
		bad[fmt.Sprintf("cut at %d", i+4)] = good[:i+4]
	}
	for name, payload := range bad {
		if found, err := docs(NewOpener(tally.DefaultEnvelopes), payload); !errors.Is(err, ErrPayload) ||
			len(found) != 0 && !strings.HasPrefix(name, "inner") {
			t.Errorf("%s: %q, %v, want ErrPayload", name, found, err)
		}
	}
}

func TestKPL_RecordsAtTheLimitAndOnePast(t *testing.T) {
	o := newOpener(tally.DefaultEnvelopes, 1<<20, 10)
	for n, bad := range map[int]bool{10: false, 11: true} {
		for _, inner := range []string{"{}", "[]"} {
			_, err := docs(o, aggregateOf(slices.Repeat([]string{inner}, n)...))
			if errors.Is(err, ErrPayload) != bad {
				t.Errorf("%d of %s: %v", n, inner, err)
			}
		}
	}
	if _, err := docs(o, aggregateOf(slices.Repeat([]string{gzipped(strings.Repeat(" ", 1<<19) + "{}")}, 3)...)); !errors.Is(
		err, ErrPayload) {
		t.Errorf("inner records that unpack to more than the limit together: %v", err)
	}
}

// TestKPL_WhateverIsWrittenIsRead writes aggregates by hand and reads them.
func TestKPL_WhateverIsWrittenIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.IntRange(1, 200).Draw(t, "keys")
		var tables, records []string
		for i := range keys {
			tables = append(tables, field(1, strings.Repeat("k", i)))
		}
		data := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 300), 0, 20).Draw(t, "data")
		for _, d := range data {
			records = append(records, record(uint64(rapid.IntRange(0, keys-1).Draw(t, "key")), string(d)))
		}
		parts := append(tables, records...)
		if rapid.Bool().Draw(t, "records first") {
			parts = append(records, tables...)
		}
		message := strings.Join(parts, "")
		sum := md5.Sum([]byte(message))
		got, err := aggregated([]byte(message), sum[:], 20)
		if err != nil || !slices.EqualFunc(got, data, bytes.Equal) {
			t.Fatalf("%q, %v, want %q", got, err, data)
		}
	})
}
