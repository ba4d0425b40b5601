package mapping

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// verdict is what a function's answer says of its batch.
type verdict struct {
	failed map[string]bool // identifiers that failed; nil: none
	err    error           // the whole batch failed, and why
}

// judge reads a function's response to a batch with the identifiers ids. Without ReportBatchItemFailures nothing in it
// matters. With it, AWS's tables decide: an empty or null response, or list, is a success; an empty, null or unknown
// identifier, a wrong key and invalid JSON fail the whole batch
// (https://docs.aws.amazon.com/lambda/latest/dg/services-kinesis-batchfailurereporting.html,
// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html).
func judge(response []byte, ids []string, reports bool) verdict {
	if !reports {
		return verdict{}
	}
	switch string(bytes.TrimSpace(response)) {
	case "", "null", `""`, "[]", "{}":
		return verdict{}
	}
	var r struct {
		Failures jsontext.Value `json:"batchItemFailures"` // this case alone; any other key is not seen
	}
	if err := json.Unmarshal(response, &r); err != nil {
		return verdict{err: fmt.Errorf("the response is not a JSON object: %w", err)}
	}
	if r.Failures == nil || r.Failures.Kind() == 'n' {
		return verdict{}
	}
	var items []map[string]jsontext.Value
	if err := json.Unmarshal(r.Failures, &items); err != nil {
		return verdict{err: fmt.Errorf("batchItemFailures is not a list of objects: %w", err)}
	}
	return match(items, ids)
}

func match(items []map[string]jsontext.Value, ids []string) verdict {
	known := make(map[string]bool, len(ids))
	for _, id := range ids {
		known[id] = true
	}
	var v verdict
	for i, item := range items {
		var id string
		value, named := item["itemIdentifier"]
		if !named || json.Unmarshal(value, &id) != nil || !known[id] {
			return verdict{err: fmt.Errorf("entry %d of batchItemFailures names no record of the batch by itemIdentifier", i)}
		}
		if v.failed == nil {
			v.failed = map[string]bool{}
		}
		v.failed[id] = true
	}
	return v
}
