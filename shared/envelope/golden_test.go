package envelope

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
	Documents    []json.RawMessage
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
			read := readRecord{r.ID, r.Identity, r.Arrived, r.Group, r.Receives, nil}
			if err := NewOpener().Documents(r.Payload, func(doc []byte) error {
				read.Documents = append(read.Documents, json.RawMessage(append([]byte(nil), doc...)))
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
	if seen < 6 {
		t.Errorf("only %d event documents", seen)
	}
}
