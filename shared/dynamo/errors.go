package dynamo

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"abacus/shared/merge"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// class is what an error says about the request that it answers.
type class uint8

const (
	unknown   class = iota // it may have been applied, may not have been, or may still be
	throttled              // not applied: too much load
	conflict               // not applied: another transaction held the item
	condition              // not applied: the condition failed
	permanent              // not applied, and never will be
)

// classes holds the codes of errors, of statements and of cancellation reasons alike; "Exception" at their end is left
// out, as BatchExecuteStatement and TransactionCanceledException do. What is not here is unknown, which loses nothing:
// the caller tries again. Among those are InternalServerError (an HTTP 500 may have been applied,
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html), ServiceUnavailable,
// TransactionInProgress, IdempotentParameterMismatch, and signatures refused after a thaw, which the SDK mends itself.
var classes = map[string]class{
	"ProvisionedThroughputExceeded": throttled,
	"RequestLimitExceeded":          throttled,
	"RequestThrottled":              throttled,
	"Throttling":                    throttled,
	"ThrottlingError":               throttled,
	"TooManyRequests":               throttled,

	"ReplicatedWriteConflict": conflict,
	"TransactionConflict":     conflict,

	"ConditionalCheckFailed": condition,
	"DuplicateItem":          condition,

	"AccessDenied":                    permanent,
	"ExpiredToken":                    permanent,
	"IncompleteSignature":             permanent,
	"ItemCollectionSizeLimitExceeded": permanent,
	"MissingAuthenticationToken":      permanent,
	"OptInRequired":                   permanent,
	"ResourceNotFound":                permanent,
	"Serialization":                   permanent,
	"TableNotFound":                   permanent,
	"UnknownOperation":                permanent,
	"UnrecognizedClient":              permanent,
	"Validation":                      permanent,
	"ValidationError":                 permanent,
}

// remedies say what to do about a code.
var remedies = map[string]string{
	"AccessDenied":       "grant the function's role this operation on the table",
	"ExpiredToken":       "renew the credentials",
	"ResourceNotFound":   "check the table's name, the region and the endpoint",
	"TableNotFound":      "check the table's name, the region and the endpoint",
	"UnknownOperation":   "check that the endpoint is one of DynamoDB",
	"UnrecognizedClient": "check the credentials and the region",
	"Validation":         "check that the table has the key schema of the template",
	"ValidationError":    "check that the table has the key schema of the template",
}

func classOf(code string) class { return classes[strings.TrimSuffix(code, "Exception")] }

// codeOf returns the code of the service's answer, or nothing where there was none.
func codeOf(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

// classify is the one place where an error of the SDK is judged.
func classify(err error) class {
	var quota ratelimit.QuotaExceededError
	var exhausted *retry.MaxAttemptsError
	if errors.As(err, &quota) || errors.As(err, &exhausted) && exhausted.Attempt > 1 {
		return unknown // the last answer says nothing of the tries before it
	}
	var params smithy.InvalidParamsError
	if errors.As(err, &params) {
		return permanent // never sent
	}
	return classOf(codeOf(err))
}

// failure turns an error of one request on one table into one of merge.Store's contract. A failed condition is an
// answer, not an error; its callers look for it first.
func failure(ctx context.Context, operation, table string, err error) error {
	if done := ctx.Err(); done != nil && codeOf(err) == "" { // without an answer that came first
		return fmt.Errorf("%s on table %s: %w, its outcome is unknown (%w)", operation, table, done, err)
	}
	return judged(operation, table, codeOf(err), classify(err), err)
}

func judged(operation, table, code string, c class, err error) error {
	switch c {
	case throttled:
		return fmt.Errorf("%s on table %s: %w: %w; if this lasts, give the table more capacity", operation, table,
			merge.ErrThrottled, err)
	case conflict:
		return fmt.Errorf("%s on table %s: %w (%w)", operation, table, &merge.ConflictError{}, err)
	case permanent:
		remedy, ok := remedies[strings.TrimSuffix(code, "Exception")]
		if !ok {
			remedy = "check the deployment"
		}
		return fmt.Errorf("%s on table %s: %w: %w; %s", operation, table, merge.ErrPermanent, err, remedy)
	}
	return fmt.Errorf("%s on table %s: outcome unknown: %w", operation, table, err)
}

// statementFailure judges the error of one statement of a batch.
func statementFailure(table string, e *types.BatchStatementError) error {
	code := string(e.Code)
	return judged(operationBatch, table, code, classOf(code), fmt.Errorf("%s: %s", code, aws.ToString(e.Message)))
}

// notForUs reports that the endpoint does not know the operation, or does not let us use it.
func notForUs(err error) bool {
	code := strings.TrimSuffix(codeOf(err), "Exception")
	return code == "UnknownOperation" || code == "AccessDenied"
}

// conditionFailed returns the item that failed a write's condition; nil where the service named none.
func conditionFailed(err error) (item row, failed bool) {
	var check *types.ConditionalCheckFailedException
	if errors.As(err, &check) {
		return check.Item, true
	}
	return nil, false
}
