package queue

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"abacus/shared/local/wire"
)

// Config is what a Server is made with. The zero value is a healthy server.
type Config struct {
	Region  string           // "": us-east-1
	Account string           // "": 000000000000
	Now     func() time.Time // nil: time.Now
	// After starts the timers of long polls; nil: time.After. Set it together with Now.
	After func(time.Duration) <-chan time.Time
	Fault func(wire.Call) wire.Fault
	// FailEntry, if set, may fail one entry of a batch operation, which then answers with status 200 all the same. nil
	// lets the entry through. Many goroutines call it, while the server is locked: it must not call the server.
	FailEntry func(Entry) *Failure
}

// Entry is one entry of a batch operation.
type Entry struct {
	Operation string // such as "DeleteMessageBatch"
	Queue     string // name
	ID        string // as the request calls it
	Message   string // message id, where there is one yet
}

// Failure is what a batch operation says of an entry that failed.
type Failure struct {
	Code        string // such as "InternalError"
	SenderFault bool
	Applied     bool // the entry is applied, and reported failed nevertheless
}

// Server is an http.Handler that speaks AmazonSQS. Servers share no state.
type Server struct {
	config Config
	wire   wire.Service

	mu     sync.Mutex
	queues map[string]*queue
}

// New returns a server without queues.
func New(config Config) *Server {
	config.Region = cmp.Or(config.Region, "us-east-1")
	config.Account = cmp.Or(config.Account, "000000000000")
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.After == nil {
		config.After = time.After
	}
	s := &Server{config: config, queues: map[string]*queue{}}
	s.wire = wire.Service{Target: "AmazonSQS", Version: "1.0", Namespace: "com.amazonaws.sqs", Fault: config.Fault,
		Operations: map[string]wire.Operation{
			"ChangeMessageVisibility":      locked(s, (*Server).changeVisibility),
			"ChangeMessageVisibilityBatch": locked(s, (*Server).changeVisibilityBatch),
			"CreateQueue":                  locked(s, (*Server).createQueue),
			"DeleteMessage":                locked(s, (*Server).deleteMessage),
			"DeleteMessageBatch":           locked(s, (*Server).deleteMessageBatch),
			"DeleteQueue":                  locked(s, (*Server).deleteQueue),
			"GetQueueAttributes":           locked(s, (*Server).getAttributes),
			"GetQueueUrl":                  locked(s, (*Server).getURL),
			"ListDeadLetterSourceQueues":   locked(s, (*Server).listSources),
			"ListMessageMoveTasks":         locked(s, (*Server).listMoveTasks),
			"ListQueues":                   locked(s, (*Server).listQueues),
			"PurgeQueue":                   locked(s, (*Server).purgeQueue),
			"ReceiveMessage":               s.receiveMessage,
			"SendMessage":                  locked(s, (*Server).sendMessage),
			"SendMessageBatch":             locked(s, (*Server).sendMessageBatch),
			"SetQueueAttributes":           locked(s, (*Server).setAttributes),
			"StartMessageMoveTask":         locked(s, (*Server).startMoveTask),
		}}
	return s
}

// caller is what an operation knows of its client.
type caller struct {
	base string          // scheme and host by which the client reached the server
	gone <-chan struct{} // closed when the client has left
}

type callerKey struct{}

// ServeHTTP answers one request. Queue URLs in answers carry the Host of the request, so that they lead back to it.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	from := caller{base: scheme + r.Host, gone: r.Context().Done()}
	s.wire.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, from)))
}

func callerOf(ctx context.Context) caller {
	c, _ := ctx.Value(callerKey{}).(caller)
	return c
}

// Calls returns how many requests have arrived.
func (s *Server) Calls() int64 { return s.wire.Calls() }

// ARN returns the name that AWS would give to queue name.
func (s *Server) ARN(name string) string {
	return "arn:aws:sqs:" + s.config.Region + ":" + s.config.Account + ":" + name
}

// locked makes an operation of a method that runs with the server locked.
func locked[R any](s *Server, method func(*Server, context.Context, R) (any, error)) wire.Operation {
	return func(ctx context.Context, body []byte) (any, error) {
		var request R
		if err := decode(body, &request); err != nil {
			return nil, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		return method(s, ctx, request)
	}
}

// decode reads a request strictly.
func decode(body []byte, request any) error {
	err := json.Unmarshal(body, request, json.RejectUnknownMembers(true))
	if errors.Is(err, json.ErrUnknownName) {
		return wire.Errorf("ValidationException", "this stand-in does not know a member of the request: %v; leave it out",
			err)
	}
	if err != nil {
		return wire.Errorf("SerializationException", "%v", err)
	}
	return nil
}

// find returns the queue at a queue URL, whatever host the URL names.
func (s *Server) find(queueURL string) (*queue, error) {
	parsed, err := url.Parse(queueURL)
	if err != nil || queueURL == "" {
		return nil, wire.Errorf("InvalidAddress", "The address %s is not valid for this endpoint.", queueURL)
	}
	name, ours := strings.CutPrefix(parsed.Path, "/"+s.config.Account+"/")
	q, ok := s.queues[name]
	if !ours || !ok {
		return nil, wire.Errorf("QueueDoesNotExist", "The specified queue does not exist.")
	}
	return q, nil
}

// byARN returns the queue with the name arn.
func (s *Server) byARN(arn string) (*queue, bool) {
	name, ours := strings.CutPrefix(arn, s.ARN(""))
	q, ok := s.queues[name]
	return q, ours && ok
}

func bad(format string, args ...any) error {
	return wire.Errorf("InvalidParameterValue", format, args...)
}
