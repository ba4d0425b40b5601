package envelope

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"abacus/shared/tally"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// eventBatch decodes one of the event documents that ship with the product.
func eventBatch(t *testing.T, name string) Batch {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "events", name))
	if err != nil {
		t.Fatal(err)
	}
	kind := Kinesis
	if strings.HasPrefix(name, "sqs-") {
		kind = SQS
	}
	b, err := Decode(kind, raw)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return b
}

// readRecord is a record as the golden files show it.
type readRecord struct {
	ID, Identity string
	Arrived      time.Time
	Group        string `json:",omitempty"`
	Receives     int    `json:",omitempty"`
	Skipped      int    `json:",omitempty"`
	Documents    []readDocument
}

type readDocument struct {
	Identity string
	Arrived  time.Time `json:",omitzero"`
	JSON     json.RawMessage
}

func TestEvents_EveryShippedDocumentDecodesToItsGoldenFile(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "events", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, file := range files {
		name := filepath.Base(file)
		if !strings.HasPrefix(name, "sqs-") && !strings.HasPrefix(name, "kinesis-") {
			continue
		}
		seen++
		b := eventBatch(t, name)
		records := []readRecord{}
		for _, r := range b.Records {
			read := readRecord{r.ID, r.Identity, r.Arrived, r.Group, r.Receives, 0, nil}
			opens := tally.DefaultEnvelopes
			if name == "sqs-base64.json" {
				opens |= tally.Base64
			}
			if read.Skipped, err = NewOpener(opens).Documents(r.Payload, func(d Document) error {
				read.Documents = append(read.Documents, readDocument{d.Identity(b.Source, r.Identity), d.Arrived,
					bytes.Clone(d.JSON)})
				return nil
			}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			records = append(records, read)
		}
		got, err := json.MarshalIndent(map[string]any{"source": b.Source, "shard": b.Shard, "fifo": b.FIFO(),
			"state": string(b.State), "records": records}, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		golden := filepath.Join("testdata", name+".golden")
		if *update {
			if err := os.WriteFile(golden, append(got, '\n'), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatalf("%v; run this test with -update and look at what it writes", err)
		}
		if diff := cmp.Diff(strings.TrimSpace(string(want)), string(got)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if seen < 10 {
		t.Errorf("only %d event documents", seen)
	}
}
