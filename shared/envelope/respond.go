package envelope

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// ErrUnnamed reports a failed record that cannot be named in an answer. Lambda takes an answer with an empty name for
// the failure of the whole batch; an error says the same and says why.
var ErrUnnamed = errors.New("failed record without a name")

// Respond returns the answer that has exactly the records with the given indices delivered again. SQS: their message
// ids. Kinesis: their sequence numbers, the lowest first; Lambda goes back to the lowest, so that every record from
// there on comes again (https://docs.aws.amazon.com/lambda/latest/dg/services-kinesis-batchfailurereporting.html). No
// failed record: {"batchItemFailures":[]}. The mapping heeds it only under ReportBatchItemFailures.
func Respond(b *Batch, failed []int) ([]byte, error) {
	ids := make([]string, 0, len(failed))
	for _, i := range failed {
		if i < 0 || i >= len(b.Records) || b.Records[i].ID == "" {
			return nil, fmt.Errorf("respond: record %d: %w", i, ErrUnnamed)
		}
		ids = append(ids, b.Records[i].ID)
	}
	if b.Kind == Kinesis {
		slices.SortFunc(ids, func(x, y string) int { return SequenceNumber(x).Compare(SequenceNumber(y)) })
	}
	ids = distinct(ids)
	answer := []byte{'{'}
	if b.State != nil {
		answer = append(append(append(answer, `"state":`...), b.State...), ',')
	}
	answer = append(answer, `"batchItemFailures":[`...)
	for i, id := range ids {
		if i > 0 {
			answer = append(answer, ',')
		}
		answer = append(answer, `{"itemIdentifier":`...)
		var err error
		if answer, err = jsontext.AppendQuote(answer, id); err != nil {
			return nil, fmt.Errorf("respond: %w", err)
		}
		answer = append(answer, '}')
	}
	return append(answer, ']', '}'), nil
}

// distinct drops every repeat, in place.
func distinct(ids []string) []string {
	if len(ids) < 2 {
		return ids
	}
	seen := make(map[string]struct{}, len(ids))
	return slices.DeleteFunc(ids, func(id string) bool {
		_, again := seen[id]
		seen[id] = struct{}{}
		return again
	})
}
