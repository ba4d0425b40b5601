package dynamo

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"abacus/shared/merge"
	"abacus/shared/tally"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"pgregory.net/rapid"
)

func TestKeys_DifferForDifferentRowsAndReadBack(t *testing.T) {
	part := rapid.StringMatching(`[a-z|\-0-9]{0,4}`)
	cell := rapid.Custom(func(t *rapid.T) tally.Cell {
		c := tally.Cell{
			Counter: rapid.StringMatching(`[a-z\-]{1,3}`).Draw(t, "counter"), Key: part.Draw(t, "key") + "k",
			Window: rapid.SampledFrom([]string{"all", "1h", "1d"}).Draw(t, "window"),
		}
		if c.Window != tally.All {
			c.Bucket = rapid.Int64Range(-62167219200, 253402300799).Draw(t, "bucket")
		}
		return c
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := cell.Draw(t, "a"), cell.Draw(t, "b")
		slotA, slotB := rapid.IntRange(0, 255).Draw(t, "slot a"), rapid.IntRange(0, 255).Draw(t, "slot b")
		pkA, skA, errA := rowKeys(a, strconv.Itoa(slotA))
		pkB, skB, errB := rowKeys(b, strconv.Itoa(slotB))
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if (pkA == pkB && skA == skB) != (a == b && slotA == slotB) {
			t.Fatalf("%+v slot %d and %+v slot %d have keys %q %q and %q %q", a, slotA, b, slotB, pkA, skA, pkB, skB)
		}
		if a.Counter == b.Counter && a.Key == b.Key && a.Window == b.Window && a.Bucket < b.Bucket && skA >= skB {
			t.Fatalf("%q does not sort before %q", skA, skB)
		}
		counter, key, _ := strings.Cut(pkA, "|")
		window, bucket, err := bucketOf(skA)
		if back := (tally.Cell{Counter: counter, Key: key, Window: window, Bucket: bucket}); err != nil || back != a {
			t.Fatalf("%q %q reads back as %+v, %v", pkA, skA, back, err)
		}
	})
}

func TestKeys_OfIdentitiesReadBackWhateverTheirBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := string(rapid.SliceOf(rapid.Byte()).Draw(t, "a"))
		b := string(rapid.SliceOf(rapid.Byte()).Draw(t, "b"))
		back, err := eventOf(claimKey(a))
		if err != nil || back != a {
			t.Fatalf("%q reads back as %q, %v", a, back, err)
		}
		if (claimKey(a) == claimKey(b)) != (a == b) || claimKey(a) == recordKey(merge.Token(b)) {
			t.Fatalf("%q and %q share a key", a, b)
		}
	})
}

func FuzzBucketOf(f *testing.F) {
	for _, seed := range []string{"all|-|0", "1h|2026-01-02T03:00:00Z|7", "1h|", "||", "1h|2026-01-02T03:00:00+00:00|0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, sk string) {
		window, bucket, err := bucketOf(sk)
		if err != nil {
			return
		}
		prefix, err := bucketPrefix(window, bucket)
		if err != nil || !strings.HasPrefix(sk, prefix) || len(sk) == len(prefix) {
			t.Errorf("%q reads as bucket %d of %q, which begins %q, %v", sk, bucket, window, prefix, err)
		}
	})
}

func FuzzRows(f *testing.F) {
	f.Add("tok", "1767323045680", "1767323045", "src", "committed", "claim|a")
	f.Add("", "x", "1e3", "", "maybe", "bytes|ff")
	f.Fuzz(func(t *testing.T, token, lease, ttl, source, state, except string) {
		n := func(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }
		now := time.Unix(1767323045, 0)
		r := row{attrToken: text(token), attrLease: n(lease), attrTTL: n(ttl), attrSource: text(source)}
		if claim, err := claimFrom(r, "e"); err == nil {
			again, err := claimFrom(claimRow(claim), "e")
			claim.Serial = strings.ToValidUTF8(claim.Serial, "\uFFFD")
			if err != nil || again != claim {
				t.Errorf("%+v is written and read as %+v, %v", claim, again, err)
			}
		}
		r = row{attrState: text(state), attrExcept: &types.AttributeValueMemberSS{Value: []string{except}}}
		record, err := recordFrom(r)
		if err != nil {
			return
		}
		again, err := recordFrom(recordRow("t", state, record.Except, now))
		if err != nil || again.State != record.State || !slices.Equal(again.Except, record.Except) {
			t.Errorf("%+v is written and read as %+v, %v", record, again, err)
		}
	})
}
