package bench

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"

	"abacus/shared/tally/rules"
)

// The workload: page views of about 120 bytes, whose pages and countries are drawn by Zipf's law (exponent 1.1).
const (
	pages     = 50
	countries = 8
	skew      = 1.1
	streamARN = "arn:aws:kinesis:us-east-1:000000000000:stream/views"
)

const oneKey = `
counters:
  - name: views
    id: view
    keys: ["{page}"]
    windows: {all: forever}
`

const threeKeys = `
counters:
  - name: views
    id: view
    keys: ["{page}", "{page}|{country}", "all"]
    windows: {all: forever}
`

// view is one record of the workload.
type view struct{ id, page, country string }

func (v view) json() string {
	return fmt.Sprintf(`{"view":%q,"page":%q,"country":%q,"agent":"Mozilla/5.0 (X11; Linux x86_64)","ms":%d}`,
		v.id, v.page, v.country, 100+len(v.page))
}

// views draws n records. salt keeps the identities of two draws apart.
func views(n int, salt string) []view {
	rng := rand.New(rand.NewPCG(7, 7))
	page := rand.NewZipf(rng, skew, 1, pages-1)
	country := rand.NewZipf(rng, skew, 1, countries-1)
	out := make([]view, n)
	for i := range out {
		out[i] = view{
			id:      fmt.Sprintf("%s%08d", salt, i),
			page:    fmt.Sprintf("page-%02d", page.Uint64()),
			country: fmt.Sprintf("c%d", country.Uint64()),
		}
	}
	return out
}

// keysOf returns what a hand-written counter of the same rules would move.
func (v view) keysOf(rules string) []string {
	if rules == oneKey {
		return []string{v.page}
	}
	return []string{v.page, v.page + "|" + v.country, "all"}
}

// kinesisEvent is the Lambda event that carries vs, the records of a shard from the given one on; 0 if none is given.
func kinesisEvent(vs []view, from ...int) []byte {
	first := 0
	if len(from) > 0 {
		first = from[0]
	}
	var b strings.Builder
	b.WriteString(`{"Records":[`)
	for i, v := range vs {
		if i > 0 {
			b.WriteByte(',')
		}
		sequence := fmt.Sprintf("495903382714902566085596925383615710959215%014d", first+i)
		fmt.Fprintf(&b, `{"kinesis":{"kinesisSchemaVersion":"1.0","partitionKey":%q,"sequenceNumber":%q,"data":%q,`+
			`"approximateArrivalTimestamp":1545084650.987},"eventSource":"aws:kinesis","eventVersion":"1.0",`+
			`"eventID":"shardId-000000000006:%s","eventName":"aws:kinesis:record",`+
			`"invokeIdentityArn":"arn:aws:iam::123456789012:role/lambda-role","awsRegion":"us-east-1","eventSourceARN":%q}`,
			v.page, sequence, base64.StdEncoding.EncodeToString([]byte(v.json())), sequence, streamARN)
	}
	b.WriteString("]}")
	return []byte(b.String())
}

func mustRules(text string) *rules.Set {
	set, err := rules.Parse("bench.yaml", []byte(text))
	if err != nil {
		panic(err) // the text is a constant of this package
	}
	return set
}
