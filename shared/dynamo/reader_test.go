package dynamo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"abacus/shared/local/table"
	"abacus/shared/merge"
	"abacus/shared/tally"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// bed is a stand-in with a Store and a Reader whose clock the test holds.
type bed struct {
	*testing.T
	client *dynamodb.Client
	store  *Store
	reader *Reader
	now    time.Time
	tokens int
}

func newBed(t *testing.T) *bed {
	t.Helper()
	_, client := standIn(t, table.Config{})
	b := &bed{T: t, client: client, now: time.Unix(1767323045, 0)}
	o := optionsFor(client)
	o.Now = func() time.Time { return b.now }
	b.store, b.reader = storeOn(t, o), readerOn(t, o)
	return b
}

func (b *bed) commit(adds ...merge.SlottedAdd) {
	b.Helper()
	b.tokens++
	a := merge.Attempt{Token: merge.Token(fmt.Sprint("t", b.tokens)), Adds: adds, Expires: b.now.Add(time.Hour)}
	if record, err := b.store.Commit(b.Context(), a); err != nil || record.State != merge.Committed {
		b.Fatalf("commit: %+v, %v", record, err)
	}
}

const hourOf = 3600

func hourly(key string, bucket int64, delta int64, slot int) merge.SlottedAdd {
	return merge.SlottedAdd{
		Cell:  tally.Cell{Counter: "c", Key: key, Window: "1h", Bucket: bucket * hourOf},
		Delta: tally.SumOf(delta), Slot: slot,
	}
}

// listed writes counts as bucket=n in hours.
func listed(counts []Count) string {
	var parts []string
	for _, c := range counts {
		parts = append(parts, fmt.Sprintf("%d=%s", c.Cell.Bucket/hourOf, c.N))
	}
	return strings.Join(parts, " ")
}

func TestReader_WindowSumsTheSlotsOfEachBucketOldestFirst(t *testing.T) {
	b := newBed(t)
	b.commit(hourly("k", 5, 1, 0), hourly("k", 5, 20, 10), hourly("k", 5, 300, 9))
	b.commit(hourly("k", -7, 4, 2), hourly("k", 490000, -5, 0))
	b.commit(hourly("k|", 5, 1000, 0), hourly("kk", 5, 1000, 0), hourly("k", 5, 4000, 9))
	got, err := b.reader.Window(t.Context(), "c", "k", "1h")
	if err != nil || listed(got) != "-7=4 5=4321 490000=-5" {
		t.Errorf("%s, %v", listed(got), err)
	}
	if want := hourly("k", 5, 0, 0).Cell; got[1].Cell != want {
		t.Errorf("cell %+v, want %+v", got[1].Cell, want)
	}
	if none, err := b.reader.Window(t.Context(), "c", "k", "1d"); err != nil || len(none) != 0 {
		t.Errorf("%v, %v", none, err)
	}
}

func TestReader_RangeIsHalfOpen(t *testing.T) {
	b := newBed(t)
	for _, bucket := range []int64{1, 2, 3, 9, 10, 11} {
		b.commit(hourly("k", bucket, bucket, 0), hourly("k", bucket, bucket, 7))
	}
	for _, test := range []struct {
		from, until int64
		want        string
	}{
		{2, 10, "2=4 3=6 9=18"}, {10, 11, "10=20"}, {4, 9, ""}, {3, 3, ""}, {3, 2, ""},
		{-100, 480000, "1=2 2=4 3=6 9=18 10=20 11=22"},
	} {
		got, err := b.reader.Range(t.Context(), "c", "k", "1h", test.from*hourOf, test.until*hourOf)
		if err != nil || listed(got) != test.want {
			t.Errorf("[%d,%d): %s, %v; want %s", test.from, test.until, listed(got), err, test.want)
		}
	}
	for _, bad := range [][2]int64{{-1 << 50, 0}, {0, 1 << 50}} {
		if _, err := b.reader.Range(t.Context(), "c", "k", "1h", bad[0], bad[1]); err == nil {
			t.Errorf("a range of %v was taken", bad)
		}
	}
}

func TestReader_AnyThirdPartOfTheSortKeyIsASlot(t *testing.T) {
	b := newBed(t)
	b.commit(hourly("k", 5, 1, 0))
	for _, slot := range []string{"shardId-000000000003", "3|x"} {
		b.putRow("c|k", "1h|1970-01-01T05:00:00Z|"+slot, row{"n": number(10)})
	}
	if got, err := b.reader.Get(t.Context(), hourly("k", 5, 0, 0).Cell); err != nil || got.String() != "21" {
		t.Errorf("%s, %v", got, err)
	}
}

func (b *bed) putRow(pk, sk string, r row) {
	b.Helper()
	r["pk"], r["sk"] = text(pk), text(sk)
	put := &dynamodb.PutItemInput{TableName: aws.String(countersName), Item: r}
	if _, err := b.client.PutItem(b.Context(), put); err != nil {
		b.Fatal(err)
	}
}

func TestReader_RowsPastTheirTTLAreIgnored(t *testing.T) {
	b := newBed(t)
	passing := hourly("k", 5, 1, 0)
	passing.Expires = b.now.Unix() + 10
	b.commit(passing, hourly("k", 6, 2, 0))
	for _, test := range []struct {
		after time.Duration
		want  string
	}{{0, "5=1 6=2"}, {9 * time.Second, "5=1 6=2"}, {10 * time.Second, "6=2"}, {1e6 * time.Hour, "6=2"}} {
		b.now = time.Unix(1767323045, 0).Add(test.after)
		if got, err := b.reader.Window(t.Context(), "c", "k", "1h"); err != nil || listed(got) != test.want {
			t.Errorf("after %v: %s, %v; want %s", test.after, listed(got), err, test.want)
		}
	}
}

func TestReader_GetManyAnswersInOrder(t *testing.T) {
	b := newBed(t)
	var adds []merge.SlottedAdd
	var cells []tally.Cell
	for i := range int64(40) {
		adds = append(adds, hourly(fmt.Sprint("k", i), i, i, 0))
		cells = append(cells, adds[i].Cell)
	}
	b.commit(adds...)
	cells = append(cells, hourly("none", 1, 0, 0).Cell, cells[7])
	got, err := b.reader.GetMany(t.Context(), cells)
	if err != nil || len(got) != 42 {
		t.Fatalf("%v, %v", got, err)
	}
	for i := range int64(40) {
		if got[i] != tally.SumOf(i) {
			t.Errorf("cell %d is %s", i, got[i])
		}
	}
	if !got[40].IsZero() || got[41] != tally.SumOf(7) {
		t.Errorf("the last two are %s", got[40:])
	}
	if got, err := b.reader.GetMany(t.Context(), nil); err != nil || len(got) != 0 {
		t.Errorf("of nothing: %v, %v", got, err)
	}
}

func TestReader_GetManyEndsAtTheFirstError(t *testing.T) {
	s := &script{replies: map[string][]reply{"Query": {refusalOf("ResourceNotFoundException", "")}}}
	o := scripted(t, s)
	o.Parallel = 2
	got, err := readerOn(t, o).GetMany(t.Context(), make([]tally.Cell, 50))
	if kindOf(err) != "permanent" || got != nil || len(s.seen()) > 2 {
		t.Errorf("%v, %v after %d requests", got, err, len(s.seen()))
	}
}

func TestReader_FollowsPages(t *testing.T) {
	page := func(sk, last string) reply {
		return reply{body: `{"Items":[{"pk":{"S":"c|k"},"sk":{"S":"` + sk + `"},"n":{"N":"1"}}]` + last + "}"}
	}
	more := `,"LastEvaluatedKey":{"pk":{"S":"c|k"},"sk":{"S":"x"}}`
	s := &script{replies: map[string][]reply{"Query": {
		page("1h|1970-01-01T05:00:00Z|0", more), {body: `{"Items":[]` + more + `}`}, page("1h|1970-01-01T05:00:00Z|1", more),
		page("1h|1970-01-01T06:00:00Z|0", ""),
	}}}
	got, err := readerOn(t, scripted(t, s)).Window(t.Context(), "c", "k", "1h")
	if err != nil || listed(got) != "5=2 6=1" {
		t.Errorf("%s, %v", listed(got), err)
	}
	for i, r := range s.seen() {
		if _, has := r.Body["ExclusiveStartKey"]; has != (i > 0) {
			t.Errorf("query %d starts at %v", i, r.Body["ExclusiveStartKey"])
		}
	}
}

func TestReader_TriesAgainWithJitterAndABound(t *testing.T) {
	throttle, cut := refusalOf("ThrottlingException", ""), reply{cut: true}
	ok := reply{body: `{"Items":[{"pk":{"S":"c|k"},"sk":{"S":"all|-|0"},"n":{"N":"7"}}]}`}
	cell := tally.Cell{Counter: "c", Key: "k", Window: "all"}
	for _, test := range []struct {
		replies  []reply
		want     string
		requests int
	}{
		{[]reply{throttle, cut, throttle, {status: 500}, throttle, ok}, "", 6},
		{[]reply{throttle}, "throttled", maxRounds},
		{[]reply{refusalOf("AccessDeniedException", "")}, "permanent", 1},
	} {
		s := &script{replies: map[string][]reply{"Query": test.replies}}
		reader := readerOn(t, scripted(t, s))
		var waits []time.Duration
		reader.sleep = recordWaits(&waits)
		got, err := reader.Get(t.Context(), cell)
		if kindOf(err) != test.want || len(s.seen()) != test.requests || err == nil && got != tally.SumOf(7) {
			t.Errorf("%s, %v after %d requests", got, err, len(s.seen()))
		}
		if test.requests == maxRounds {
			checkWaits(t, waits)
		}
	}
}

func TestReader_KeepsBothCausesWhenItsContextEndsAWait(t *testing.T) {
	s := &script{replies: map[string][]reply{"Query": {refusalOf("ThrottlingException", "")}}}
	reader := readerOn(t, scripted(t, s))
	ctx, cancel := context.WithCancel(t.Context())
	reader.sleep = func(ctx context.Context, _ time.Duration) error {
		cancel()
		return ctx.Err()
	}
	_, err := reader.Get(ctx, tally.Cell{Counter: "c", Key: "k", Window: "all"})
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "ThrottlingException") {
		t.Errorf("%v", err)
	}
}

func TestReader_ConsistencyIsAChoice(t *testing.T) {
	s := &script{}
	reader := readerOn(t, scripted(t, s))
	for _, consistent := range []bool{false, true} {
		reader.Consistent = consistent
		if _, err := reader.Get(t.Context(), tally.Cell{Counter: "c", Key: "k", Window: "all"}); err != nil {
			t.Fatal(err)
		}
		requests := s.seen()
		if got := requests[len(requests)-1].Body["ConsistentRead"]; got != consistent {
			t.Errorf("ConsistentRead %v, want %t", got, consistent)
		}
	}
}

func TestReader_MalformedRowNamesItsKeyAndNotItsContents(t *testing.T) {
	const five = "1h|1970-01-01T05:00:00Z|0"
	for name, bad := range map[string]struct {
		sk string
		r  row
	}{
		"n is text":        {five, row{"n": text("secret")}},
		"n is missing":     {five, row{}},
		"n is a fraction":  {five, row{"n": &types.AttributeValueMemberN{Value: "1.5"}}},
		"ttl is text":      {five, row{"n": number(1), "ttl": text("secret")}},
		"no slot":          {"1h|1970-01-01T05:00:00Z", row{"n": number(1)}},
		"empty slot":       {"1h|1970-01-01T05:00:00Z|", row{"n": number(1)}},
		"no bucket":        {"1h|", row{"n": number(1)}},
		"bucket of digits": {"1h|18000|0", row{"n": number(1)}},
		"bucket in a zone": {"1h|1970-01-01T05:00:00+01:00|0", row{"n": number(1)}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			b.putRow("c|k", bad.sk, bad.r)
			_, err := b.reader.Window(t.Context(), "c", "k", "1h")
			key := fmt.Sprintf("%q, %q", "c|k", bad.sk)
			if err == nil || !strings.Contains(err.Error(), key) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestReader_SumOfSlotsBeyond128BitsIsAnError(t *testing.T) {
	b := newBed(t)
	big, _ := tally.ParseSum(strings.Repeat("9", 38))
	for _, sign := range []tally.Sum{big, big.Neg()} {
		key := "k" + sign.String()[:1]
		first, second := hourly(key, 5, 0, 0), hourly(key, 5, 0, 1)
		first.Delta, second.Delta = sign, sign
		b.commit(first)
		if got, err := b.reader.Get(t.Context(), first.Cell); err != nil || got != sign {
			t.Errorf("38 digits: %s, %v", got, err)
		}
		b.commit(second)
		if got, err := b.reader.Get(t.Context(), first.Cell); !errors.Is(err, tally.ErrRange) {
			t.Errorf("twice 38 digits: %s, %v", got, err)
		}
	}
}

// Case A7: a ttl that is not a Number of epoch seconds is no ttl.
func TestA7_TTLIsANumberOfSecondsOnEveryRow(t *testing.T) {
	b := newBed(t)
	expires := b.now.Add(time.Hour)
	add := hourly("k", 5, 1, 0)
	add.Expires = expires.Unix()
	b.commit(add)
	claim := merge.Claim{Event: "e", Token: "t", Lease: b.now, Expires: expires}
	b.store.PutClaims(t.Context(), []merge.Claim{claim})
	if _, err := b.store.Abort(t.Context(), "aborted", expires); err != nil {
		t.Fatal(err)
	}
	taken := claim
	taken.Token = "u"
	if _, err := b.store.TakeClaim(t.Context(), taken, "t"); err != nil {
		t.Fatal(err)
	}
	rows := 0
	for _, name := range []string{countersName, dedupName} {
		out, err := b.client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String(name)})
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range out.Items {
			rows++
			ttl, ok := item["ttl"].(*types.AttributeValueMemberN)
			if !ok || len(ttl.Value) != 10 {
				t.Errorf("ttl of %v is %v", item["pk"], item["ttl"])
			}
		}
	}
	if rows != 4 {
		t.Errorf("%d rows, want a counter, a claim and two records", rows)
	}
}

// The ttl of a commit record is later than that of every claim which expires before it, however seconds are cut.
func TestA7_CommitRecordOutlivesItsClaims(t *testing.T) {
	for _, fraction := range []time.Duration{0, 1, 499e6, 999999999} {
		at := time.Unix(1767323045, 0).Add(fraction)
		for _, later := range []time.Duration{1, 5e8, time.Second} {
			claim, record := secondsDown(at), secondsUp(at.Add(later))
			if record <= claim {
				t.Errorf("claim until %v: ttl %d, record until %v: ttl %d", at, claim, at.Add(later), record)
			}
		}
	}
}

func TestCommit_BucketThatIsKeptForEverLosesItsTTL(t *testing.T) {
	b := newBed(t)
	add := hourly("k", 5, 1, 0)
	add.Expires = b.now.Unix() + 10
	b.commit(add)
	add.Expires = 0
	b.commit(add)
	b.now = b.now.Add(time.Hour)
	if got, err := b.reader.Get(t.Context(), add.Cell); err != nil || got.String() != "2" {
		t.Errorf("%s, %v", got, err)
	}
}

func TestBuckets_SortAsTimesDo(t *testing.T) {
	var texts []string
	for _, bucket := range []int64{-62167219200, -1, 0, 1, 59, 86400, 1767323045, 253402300799} {
		text, err := bucketText("1h", bucket)
		if err != nil || len(text) != 20 {
			t.Errorf("%d: %q, %v", bucket, text, err)
		}
		texts = append(texts, text)
	}
	if !slices.IsSorted(texts) {
		t.Errorf("%q", texts)
	}
}
