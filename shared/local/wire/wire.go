// Package wire speaks the AWS JSON protocols 1.0 and 1.1 over HTTP for the stand-ins: it routes X-Amz-Target to an
// operation, encodes answers and errors as the services do, and lets a test break any call before it is applied, after
// it, or on its way back.
package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// Encoded is an answer that is JSON already; it is written as it is.
type Encoded []byte

// Operation answers one request body. It returns a value to be encoded as JSON, or an error; an *Error reaches the
// client as the service's own, any other as an internal failure with status 500.
type Operation func(ctx context.Context, body []byte) (any, error)

// Error is a service's modelled error.
type Error struct {
	Code    string         // such as "ConditionalCheckFailedException"
	Message string         //
	Status  int            // 0 means 400
	Fields  map[string]any // further members of the error's body, such as "Item" or "CancellationReasons"
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Errorf returns an *Error of status 400.
func Errorf(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Call is one request as a fault decision sees it.
type Call struct {
	N    int64  // 1 for the service's first call
	Name string // operation, such as "TransactWriteItems"
	Body []byte
}

// Fault says how one call goes wrong. The zero value is a healthy call.
type Fault struct {
	Before error         // answered instead of applying the call
	After  error         // answered after applying the call
	Lose   bool          // apply the call, then cut the connection without an answer
	Refuse bool          // cut the connection without applying the call
	Late   time.Duration // apply the call this long after its client got Before, or after its connection was cut by Refuse
	Hang   bool          // do not answer until the client goes away; applied first if Lose is set
}

// Service is an http.Handler for one service.
type Service struct {
	Target     string               // prefix of X-Amz-Target, such as "DynamoDB_20120810"
	Version    string               // protocol version, "1.0" or "1.1"
	Namespace  string               // put before "#" in an error's __type; empty where the service has none
	Operations map[string]Operation // by name; any other is an UnknownOperationException
	MaxBody    int64                // bytes; 0 means 16 MiB
	// Fault decides the fate of each call; nil means all are healthy. It is called by many goroutines, and is set before
	// the first call: afterwards use Inject.
	Fault func(Call) Fault
	// After, if set, runs the late half of a Late fault; nil means time.AfterFunc. Tests pass one that they drive.
	After func(d time.Duration, f func())

	calls    atomic.Int64
	injected atomic.Pointer[func(Call) Fault]
}

// Inject replaces Fault while the service is in use; nil heals it.
func (s *Service) Inject(fault func(Call) Fault) {
	if fault == nil {
		fault = func(Call) Fault { return Fault{} }
	}
	s.injected.Store(&fault)
}

// Calls returns how many requests have arrived.
func (s *Service) Calls() int64 { return s.calls.Load() }

// ServeHTTP answers one request.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	limit := s.MaxBody
	if limit == 0 {
		limit = 16 << 20
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err != nil {
		s.fail(w, &Error{Code: "RequestEntityTooLarge", Message: err.Error(), Status: http.StatusRequestEntityTooLarge})
		return
	}
	prefix, name, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	operation, known := s.Operations[name]
	if !known || prefix != s.Target || r.Method != http.MethodPost {
		s.fail(w, Errorf("UnknownOperationException", "%s %s is not an operation of this stand-in", r.Method,
			r.Header.Get("X-Amz-Target")))
		return
	}
	call := Call{N: s.calls.Add(1), Name: name, Body: body}
	decide := s.Fault
	if injected := s.injected.Load(); injected != nil {
		decide = *injected
	}
	var fault Fault
	if decide != nil {
		fault = decide(call)
	}
	s.answer(w, r, operation, call, fault)
}

func (s *Service) answer(w http.ResponseWriter, r *http.Request, operation Operation, call Call, fault Fault) {
	// The work is done on a context of its own: a service does not undo a request whose client has left.
	apply := func() (any, error) { return operation(context.WithoutCancel(r.Context()), call.Body) }
	switch {
	case fault.Refuse || fault.Before != nil:
		if fault.Late > 0 {
			s.later(fault.Late, func() { _, _ = apply() })
		}
		if fault.Refuse {
			panic(http.ErrAbortHandler)
		}
		s.fail(w, fault.Before)
		return
	case fault.Hang && !fault.Lose:
		<-r.Context().Done()
		return
	}
	value, err := apply()
	switch {
	case fault.Hang:
		<-r.Context().Done()
	case fault.Lose:
		panic(http.ErrAbortHandler)
	case fault.After != nil:
		s.fail(w, fault.After)
	case err != nil:
		s.fail(w, err)
	default:
		s.write(w, http.StatusOK, value)
	}
}

func (s *Service) later(d time.Duration, f func()) {
	if s.After != nil {
		s.After(d, f)
		return
	}
	time.AfterFunc(d, f)
}

func (s *Service) fail(w http.ResponseWriter, err error) {
	var modelled *Error
	if !errors.As(err, &modelled) {
		modelled = &Error{Code: "InternalServerError", Message: err.Error(), Status: http.StatusInternalServerError}
	}
	kind := modelled.Code
	if s.Namespace != "" {
		kind = s.Namespace + "#" + kind
	}
	body := map[string]any{"__type": kind, "message": modelled.Message}
	for k, v := range modelled.Fields {
		body[k] = v
	}
	status := modelled.Status
	if status == 0 {
		status = http.StatusBadRequest
	}
	s.write(w, status, body)
}

func (s *Service) write(w http.ResponseWriter, status int, value any) {
	text, encoded := value.(Encoded)
	var err error
	if !encoded {
		text, err = json.Marshal(value)
	}
	if err != nil {
		status, text = http.StatusInternalServerError, []byte(`{"__type":"InternalServerError"}`)
	}
	w.Header().Set("Content-Type", "application/x-amz-json-"+s.Version)
	w.WriteHeader(status)
	_, _ = w.Write(text)
}
