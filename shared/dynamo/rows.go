package dynamo

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"abacus/shared/merge"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// row is one item.
type row = map[string]types.AttributeValue

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// secondsDown and secondsUp round so that a commit record's ttl is later than that of a claim which expires before it.
func secondsDown(t time.Time) int64 { return t.Unix() }

func secondsUp(t time.Time) int64 { return t.Add(time.Second - 1).Unix() }

func millisUp(t time.Time) int64 { return t.Add(time.Millisecond - 1).UnixMilli() }

func claimRow(c merge.Claim) row {
	r := row{
		attrPK: text(claimKey(c.Event)), attrToken: text(string(c.Token)),
		attrLease: number(millisUp(c.Lease)), attrTTL: number(secondsDown(c.Expires)),
	}
	if c.Serial != "" {
		r[attrSource] = text(strings.ToValidUTF8(c.Serial, "\uFFFD"))
	}
	return r
}

// claimFrom reads the row that stands on event, past its ttl or not; no attributes are a claim without a token.
func claimFrom(r row, event string) (merge.Claim, error) {
	if len(r) == 0 {
		return merge.Claim{}, nil
	}
	token, errToken := textOf(r, attrToken)
	lease, errLease := numberOf(r, attrLease)
	ttl, errTTL := numberOf(r, attrTTL)
	var source string
	var errSource error
	if _, ok := r[attrSource]; ok {
		source, errSource = textOf(r, attrSource)
	}
	if err := errors.Join(errToken, errLease, errTTL, errSource); err != nil {
		return merge.Claim{}, malformed("claim", err)
	}
	return merge.Claim{
		Event: event, Token: merge.Token(token), Serial: source,
		Lease: time.UnixMilli(lease).UTC(), Expires: time.Unix(ttl, 0).UTC(),
	}, nil
}

// Texts of a commit record's state.
const (
	stateCommitted = "committed"
	stateAborted   = "aborted"
)

func recordRow(token merge.Token, state string, except []string, expires time.Time) row {
	r := row{attrPK: text(recordKey(token)), attrState: text(state), attrTTL: number(secondsUp(expires))}
	if len(except) > 0 { // an empty set is not a value
		keys := make([]string, len(except))
		for i, event := range except {
			keys[i] = claimKey(event)
		}
		slices.Sort(keys)
		r[attrExcept] = &types.AttributeValueMemberSS{Value: slices.Compact(keys)}
	}
	return r
}

func recordFrom(r row) (merge.Record, error) {
	if len(r) == 0 {
		return merge.Record{}, nil
	}
	state, err := textOf(r, attrState)
	if err != nil {
		return merge.Record{}, malformed("commit record", err)
	}
	record := merge.Record{}
	switch state {
	case stateCommitted:
		record.State = merge.Committed
	case stateAborted:
		record.State = merge.Aborted
	default:
		return merge.Record{}, malformed("commit record", fmt.Errorf("attribute %q is neither %q nor %q", attrState,
			stateCommitted, stateAborted))
	}
	except, ok := r[attrExcept]
	if !ok {
		return record, nil
	}
	set, ok := except.(*types.AttributeValueMemberSS)
	if !ok {
		return merge.Record{}, malformed("commit record", fmt.Errorf("attribute %q is not a set of strings", attrExcept))
	}
	for _, key := range set.Value {
		event, err := eventOf(key)
		if err != nil {
			return merge.Record{}, malformed("commit record", fmt.Errorf("attribute %q: %w", attrExcept, err))
		}
		record.Except = append(record.Except, event)
	}
	return record, nil
}

// malformed reports a row of the dedup table that this package did not write.
func malformed(kind string, why error) error {
	return fmt.Errorf("%w: a %s in the dedup table is malformed: %w; find out who else writes to it and delete the row",
		merge.ErrPermanent, kind, why)
}

func textOf(r row, name string) (string, error) {
	value, ok := r[name].(*types.AttributeValueMemberS)
	if !ok {
		return "", fmt.Errorf("attribute %q is not a string", name)
	}
	return value.Value, nil
}

func numberOf(r row, name string) (int64, error) {
	value, ok := r[name].(*types.AttributeValueMemberN)
	if !ok {
		return 0, fmt.Errorf("attribute %q is not a number", name)
	}
	n, err := strconv.ParseInt(value.Value, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("attribute %q is not a whole number of 64 bits", name)
	}
	return n, nil
}
