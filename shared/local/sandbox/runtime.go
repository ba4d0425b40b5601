package sandbox

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// invocation is one event on its way through one process.
type invocation struct {
	id       string
	payload  []byte
	deadline time.Time   // set before it is handed out
	reply    chan answer // from the runtime, once
	result   chan answer // to the caller, once
}

type answer struct {
	payload []byte
	err     error
}

// runtimeAPI is the Runtime API of one process, version 2018-06-01. The process asks, an environment hands out.
type runtimeAPI struct {
	arn   string
	asked chan struct{}       // holds one token per request for an event that waits
	work  chan *invocation    // unbuffered: taken by the request that waits
	inits chan *FunctionError // an init that the runtime reported as failed
	gone  <-chan struct{}     // closed when the process has exited or is given up

	mu      sync.Mutex
	waiting bool        // a request waits in next
	current *invocation // handed out and unanswered
}

func newRuntimeAPI(arn string, gone <-chan struct{}) *runtimeAPI {
	return &runtimeAPI{
		arn: arn, gone: gone,
		asked: make(chan struct{}, 1), work: make(chan *invocation), inits: make(chan *FunctionError, 1),
	}
}

// register adds the API's routes; other APIs of a process, on the same listener, add theirs.
func (a *runtimeAPI) register(mux *http.ServeMux) {
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", a.next)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/response", a.response)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/error", a.error)
	mux.HandleFunc("POST /2018-06-01/runtime/init/error", a.initError)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, http.StatusNotFound, "ResourceNotFound", r.Method+" "+r.URL.Path+" is not part of this API")
	})
}

// next waits, without a limit, for an event to hand out.
func (a *runtimeAPI) next(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	refused := a.waiting || a.current != nil
	if !refused {
		a.waiting = true
		offer(a.asked)
	}
	a.mu.Unlock()
	if refused {
		refuse(w, http.StatusForbidden, "InvalidStateTransition", "answer the event at hand before asking for the next")
		return
	}
	var inv *invocation
	select {
	case inv = <-a.work:
	case <-r.Context().Done():
	case <-a.gone:
	}
	a.mu.Lock()
	a.waiting, a.current = false, inv
	select { // the token of a request that was given up must not stand for this one
	case <-a.asked:
	default:
	}
	a.mu.Unlock()
	if inv != nil {
		a.hand(w, inv)
	}
}

func offer(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (a *runtimeAPI) hand(w http.ResponseWriter, inv *invocation) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Lambda-Runtime-Aws-Request-Id", inv.id)
	h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(inv.deadline.UnixMilli(), 10))
	h.Set("Lambda-Runtime-Invoked-Function-Arn", a.arn)
	h.Set("Lambda-Runtime-Trace-Id", newTraceID(time.Now()))
	_, _ = w.Write(inv.payload)
}

func (a *runtimeAPI) response(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxResponse+1))
	if err != nil {
		refuse(w, http.StatusBadRequest, "RequestReadError", "the body broke off")
		return
	}
	tooLarge := len(body) > MaxResponse
	if tooLarge {
		_, _ = io.Copy(io.Discard, r.Body) // so that the runtime gets to read the refusal
	}
	inv := a.take(w, r)
	switch {
	case inv == nil:
	case tooLarge:
		inv.reply <- answer{err: newFunctionError(TypeTooLarge,
			"response payload size exceeded maximum allowed payload size (%d bytes)", MaxResponse)}
		refuse(w, http.StatusRequestEntityTooLarge, "RequestEntityTooLarge", "response is larger than 6 MB")
	case r.Trailer.Get("Lambda-Runtime-Function-Error-Type") != "":
		// The handler's reader failed midway, so what came before it is no answer.
		doc, _ := base64.StdEncoding.DecodeString(r.Trailer.Get("Lambda-Runtime-Function-Error-Body"))
		inv.reply <- answer{err: parseFunctionError(doc, r.Trailer.Get("Lambda-Runtime-Function-Error-Type"))}
		accept(w)
	default:
		inv.reply <- answer{payload: body}
		accept(w)
	}
}

func (a *runtimeAPI) error(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(io.LimitReader(r.Body, MaxResponse))
	if inv := a.take(w, r); inv != nil {
		inv.reply <- answer{err: parseFunctionError(body, r.Header.Get("Lambda-Runtime-Function-Error-Type"))}
		accept(w)
	}
}

func (a *runtimeAPI) initError(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(io.LimitReader(r.Body, MaxResponse))
	select {
	case a.inits <- parseFunctionError(body, r.Header.Get("Lambda-Runtime-Function-Error-Type")):
		accept(w)
	default:
		refuse(w, http.StatusForbidden, "InvalidStateTransition", "the init has been reported before")
	}
}

// take ends the current invocation if the request names it; else it refuses the request and returns nil.
func (a *runtimeAPI) take(w http.ResponseWriter, r *http.Request) *invocation {
	a.mu.Lock()
	inv := a.current
	known := inv != nil && inv.id == r.PathValue("id")
	if known {
		a.current = nil
	}
	a.mu.Unlock()
	if !known {
		refuse(w, http.StatusBadRequest, "InvalidRequestID", "no event with this request id is at hand")
		return nil
	}
	return inv
}

func accept(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	_, _ = io.WriteString(w, `{"status":"OK"}`+"\n")
}

func refuse(w http.ResponseWriter, status int, kind, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(errorDocument{Message: message, Type: kind})
}

func newRequestID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func newTraceID(now time.Time) string {
	var b [20]byte
	_, _ = rand.Read(b[:])
	return fmt.Sprintf("Root=1-%08x-%x;Parent=%x;Sampled=0", now.Unix(), b[:12], b[12:])
}
