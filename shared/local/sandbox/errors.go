package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Payload limits of a synchronous invocation in bytes
// (https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html; Lambda's own message about a response that
// is too large names the second).
const (
	MaxRequest  = 6 << 20
	MaxResponse = 6<<20 + 100
)

// Error types that Lambda itself gives, in FunctionError.Type.
const (
	TypeTimedOut    = "Sandbox.Timedout"              // the function's timeout passed
	TypeExit        = "Runtime.ExitError"             // the process ended without an answer
	TypeEntrypoint  = "Runtime.InvalidEntrypoint"     // the bootstrap cannot be started
	TypeTooLarge    = "Function.ResponseSizeTooLarge" // the answer exceeds MaxResponse
	TypeInitTimeout = "Sandbox.InitTimedout"          // the process never asked for an event
)

var (
	// ErrClosed reports an invocation of a function that is closed or closing.
	ErrClosed = errors.New("function is closed")
	// ErrRequestTooLarge reports a payload beyond MaxRequest; the function did not see it.
	ErrRequestTooLarge = errors.New("request is larger than 6 MB")
)

// FunctionError reports an invocation that ended in anything but a response: Lambda answers such a one with
// FunctionError set, and an event source treats its whole batch as failed.
type FunctionError struct {
	Type    string // errorType as the runtime gave it, or one of the Type constants
	Message string // errorMessage; for people, and not checked for secrets
	Payload []byte // the error document
}

func (e *FunctionError) Error() string {
	return fmt.Sprintf("function error %s: %s", e.Type, e.Message)
}

type errorDocument struct {
	Message string `json:"errorMessage"`
	Type    string `json:"errorType"`
}

func newFunctionError(kind, format string, args ...any) *FunctionError {
	message := fmt.Sprintf(format, args...)
	payload, _ := json.Marshal(errorDocument{Message: message, Type: kind})
	return &FunctionError{Type: kind, Message: message, Payload: payload}
}

// parseFunctionError reads what a runtime posted. The body need not be JSON, and the header stands in for a type that
// the body lacks.
func parseFunctionError(body []byte, header string) *FunctionError {
	var doc errorDocument
	if err := json.Unmarshal(body, &doc); err != nil || doc.Type == "" {
		doc.Type = header
	}
	if doc.Type == "" {
		doc.Type = "Runtime.UnknownReason"
	}
	return &FunctionError{Type: doc.Type, Message: doc.Message, Payload: body}
}
