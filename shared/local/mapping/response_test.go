package mapping_test

import (
	"errors"
	"testing"

	"abacus/shared/local/mapping"
	"abacus/shared/local/queue"
	"abacus/shared/local/stream"
)

// answers are the rows of AWS's tables of responses, for a batch of a, b and c. The first answer is the row's; what
// comes after it succeeds.
var answers = []struct {
	name           string
	answer         func(words, ids []string) (string, error)
	kinesis, queue string // batches that the function sees
}{
	{"empty response", text(``), "abc", "abc"},
	{"null", text(`null`), "abc", "abc"},
	{"empty string", text(`""`), "abc", "abc"},
	{"empty list as the response", text(`[]`), "abc", "abc"},
	{"empty object", text(`{}`), "abc", "abc"},
	{"empty list", text(`{"batchItemFailures":[]}`), "abc", "abc"},
	{"null list", text(`{"batchItemFailures":null}`), "abc", "abc"},
	{"capital key of the list", text(`{"BatchItemFailures":[{"itemIdentifier":"x"}]}`), "abc", "abc"},
	{"invalid JSON", text(`{"batchItemFailures":`), "abc abc", "abc abc"},
	{"list that is none", text(`{"batchItemFailures":7}`), "abc abc", "abc abc"},
	{"empty identifier", text(`{"batchItemFailures":[{"itemIdentifier":""}]}`), "abc abc", "abc abc"},
	{"null identifier", text(`{"batchItemFailures":[{"itemIdentifier":null}]}`), "abc abc", "abc abc"},
	{"number as identifier", text(`{"batchItemFailures":[{"itemIdentifier":7}]}`), "abc abc", "abc abc"},
	{"wrong key", text(`{"batchItemFailures":[{"id":"x"}]}`), "abc abc", "abc abc"},
	{"capital key", text(`{"batchItemFailures":[{"ItemIdentifier":"x"}]}`), "abc abc", "abc abc"},
	{"identifier not in the batch", text(`{"batchItemFailures":[{"itemIdentifier":"x"}]}`), "abc abc", "abc abc"},
	{"good and bad identifier", func(_, ids []string) (string, error) {
		return `{"batchItemFailures":[{"itemIdentifier":"` + ids[2] + `"},{"itemIdentifier":""}]}`, nil
	}, "abc abc", "abc abc"},
	{"eventID in place of the sequence number", func(_, ids []string) (string, error) {
		return `{"batchItemFailures":[{"itemIdentifier":"shardId-000000000000:` + ids[1] + `"}]}`, nil
	}, "abc abc", "abc abc"},
	{"function error", func(_, _ []string) (string, error) { return "", errors.New("crash") }, "abc abc", "abc abc"},
	{"two identifiers, the later first", func(_, ids []string) (string, error) {
		return `{"batchItemFailures":[{"itemIdentifier":"` + ids[2] + `"},{"itemIdentifier":"` + ids[1] + `"}]}`, nil
	}, "abc bc", "abc bc"},
	{"first identifier alone", func(words, ids []string) (string, error) { return failing(words, ids, "a"), nil },
		"abc abc", "abc a"},
	{"middle identifier alone", func(words, ids []string) (string, error) { return failing(words, ids, "b"), nil },
		"abc bc", "abc b"},
}

func text(response string) func(words, ids []string) (string, error) {
	return func(_, _ []string) (string, error) { return response, nil }
}

func TestC1_KinesisReadsAResponseByAWSsTable(t *testing.T) {
	for _, row := range answers {
		for _, reports := range []bool{true, false} {
			t.Run(row.name+map[bool]string{false: ", not reported"}[reports], func(t *testing.T) {
				bubble(t, stream.Config{}, queue.Config{}, func(w *world) {
					w.stream(1)
					w.put("k", "a b c")
					f := &function{answer: first(row.answer)}
					m := w.fromKinesis(mapping.KinesisConfig{Invoke: f.invoke, MaximumRetryAttempts: -1,
						ReportBatchItemFailures: reports})
					w.start(m)
					w.drained(m)
					f.wantSeen(t, wanted(row.name, row.kinesis, reports))
				})
			})
		}
	}
}

func TestC1_SQSReadsAResponseByAWSsTable(t *testing.T) {
	for _, row := range answers {
		for _, reports := range []bool{true, false} {
			t.Run(row.name+map[bool]string{false: ", not reported"}[reports], func(t *testing.T) {
				bubble(t, stream.Config{}, queue.Config{}, func(w *world) {
					url, _ := w.queue("q", "VisibilityTimeout", "2")
					w.send(url, "a b c")
					f := &function{answer: first(row.answer)}
					m := w.fromSQS(url, mapping.SQSConfig{Invoke: f.invoke, ReportBatchItemFailures: reports})
					w.start(m)
					w.drained(m)
					f.wantSeen(t, wanted(row.name, row.queue, reports))
				})
			})
		}
	}
}

// wanted returns the batches of a row; without ReportBatchItemFailures everything but an error is a success.
func wanted(name, batches string, reports bool) string {
	if !reports && name != "function error" {
		return "abc"
	}
	return batches
}

func first(answer func(words, ids []string) (string, error)) func(int, []string, []string) (string, error) {
	return func(n int, words, ids []string) (string, error) {
		if n == 1 {
			return answer(words, ids)
		}
		return "", nil
	}
}
