package dynamo

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"abacus/shared/merge"
	"abacus/shared/tally"
)

// Limits of DynamoDB's keys, in bytes
// (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html).
const (
	maxPartitionKey = 2048
	maxSortKey      = 1024
)

// Text forms of the dedup table's keys.
const (
	claimPrefix  = "claim|"
	bytesPrefix  = "bytes|"
	commitPrefix = "commit|"
)

// bucketLayout is fixed in width for the years 0 to 9999, so that texts sort as times do.
const bucketLayout = "2006-01-02T15:04:05Z"

const noBucket = "-"

// claimKey returns the key of an event's claim. Identities that are not UTF-8 are told apart by their bytes, which JSON
// could not carry.
func claimKey(event string) string {
	if utf8.ValidString(event) {
		return claimPrefix + event
	}
	return bytesPrefix + hex.EncodeToString([]byte(event))
}

// eventOf is the inverse of claimKey.
func eventOf(key string) (string, error) {
	if event, ok := strings.CutPrefix(key, claimPrefix); ok {
		return event, nil
	}
	if text, ok := strings.CutPrefix(key, bytesPrefix); ok {
		event, err := hex.DecodeString(text)
		return string(event), err
	}
	return "", errors.New("not the key of a claim")
}

func recordKey(token merge.Token) string { return commitPrefix + string(token) }

// counterKey returns the partition key of a counter's rows for one key.
func counterKey(counter, key string) string { return counter + "|" + key }

// bucketPrefix returns what the sort keys of one bucket begin with.
func bucketPrefix(window string, bucket int64) (string, error) {
	text, err := bucketText(window, bucket)
	return window + "|" + text + "|", err
}

func bucketText(window string, bucket int64) (string, error) {
	if window == tally.All {
		if bucket != 0 {
			return "", fmt.Errorf("bucket %d in the window %q, which has only 0", bucket, window)
		}
		return noBucket, nil
	}
	start := time.Unix(bucket, 0).UTC()
	if start.Year() < 0 || start.Year() > 9999 {
		return "", fmt.Errorf("bucket %d is not in the years 0 to 9999", bucket)
	}
	return start.Format(bucketLayout), nil
}

// rowKeys returns the keys of one row of a cell, or why no row can have them.
func rowKeys(cell tally.Cell, slot string) (pk, sk string, err error) {
	prefix, err := bucketPrefix(cell.Window, cell.Bucket)
	if err != nil {
		return "", "", err
	}
	pk, sk = counterKey(cell.Counter, cell.Key), prefix+slot
	switch {
	case cell.Counter == "" || strings.Contains(cell.Counter, "|"):
		err = errors.New("the counter's name is empty or has a '|'")
	case cell.Window == "" || strings.Contains(cell.Window, "|"):
		err = errors.New("the window's name is empty or has a '|'")
	case cell.Key == "":
		err = errors.New("the key is empty")
	case !utf8.ValidString(pk) || !utf8.ValidString(sk):
		err = errors.New("the key is not UTF-8")
	case len(pk) > maxPartitionKey || len(sk) > maxSortKey:
		err = fmt.Errorf("keys of %d and %d bytes; at most %d and %d fit", len(pk), len(sk), maxPartitionKey, maxSortKey)
	}
	return pk, sk, err
}

// bucketOf reads a sort key; whatever follows the bucket is the row's slot.
func bucketOf(sk string) (window string, bucket int64, err error) {
	window, rest, ok := strings.Cut(sk, "|")
	text, slot, ok2 := strings.Cut(rest, "|")
	if !ok || !ok2 || window == "" || slot == "" {
		return "", 0, errors.New("sort key is not <window>|<bucket>|<slot>")
	}
	if window == tally.All {
		if text != noBucket {
			return "", 0, fmt.Errorf("bucket of the window %q is not %q", window, noBucket)
		}
		return window, 0, nil
	}
	start, err := time.Parse(bucketLayout, text)
	if err != nil || start.Format(bucketLayout) != text {
		return "", 0, fmt.Errorf("bucket is not of the form %s", bucketLayout)
	}
	return window, start.Unix(), nil
}
