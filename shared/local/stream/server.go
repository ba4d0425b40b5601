package stream

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"abacus/shared/local/wire"
)

// Trimmed says how a read that starts at a trimmed sequence number goes. AWS documents nothing, and reports differ; a
// reader must cope with all three.
type Trimmed uint8

// What GetShardIterator makes of a sequence number that retention has trimmed.
const (
	TrimmedReadsHead  Trimmed = iota // the iterator stands at the oldest record left
	TrimmedReadsEmpty                // every read is empty, and MillisBehindLatest stays at the retention period
	TrimmedIsRefused                 // InvalidArgumentException
)

// Config is what a Server is made with. The zero value is a healthy server.
type Config struct {
	Region  string           // "": us-east-1
	Account string           // "": 000000000000
	Now     func() time.Time // nil: time.Now
	Fault   func(wire.Call) wire.Fault
	Trimmed Trimmed
	// Throttle turns on the limits of a shard: 1,000 records and 1 MiB written a second, 5 reads and 2 MiB read a second.
	Throttle bool
	// FailRecord, if set, may fail one record of PutRecord or PutRecords: it returns an error code such as
	// "ProvisionedThroughputExceededException" or "InternalFailure", or "" to let it through. Many goroutines call it.
	FailRecord func(stream, partitionKey string, data []byte) string
}

// Server is an http.Handler that speaks Kinesis_20131202. Servers share no state.
type Server struct {
	config Config
	wire   wire.Service

	mu      sync.Mutex
	streams map[string]*stream
}

// New returns a server without streams.
func New(config Config) *Server {
	config.Region = cmp.Or(config.Region, "us-east-1")
	config.Account = cmp.Or(config.Account, "000000000000")
	if config.Now == nil {
		config.Now = time.Now
	}
	s := &Server{config: config, streams: map[string]*stream{}}
	s.wire = wire.Service{Target: "Kinesis_20131202", Version: "1.1", Fault: config.Fault, MaxBody: 32 << 20,
		Operations: map[string]wire.Operation{
			"CreateStream":                  serve(s, (*Server).createStream),
			"DecreaseStreamRetentionPeriod": serve(s, (*Server).decreaseRetention),
			"DeleteStream":                  serve(s, (*Server).deleteStream),
			"DescribeStream":                serve(s, (*Server).describeStream),
			"DescribeStreamSummary":         serve(s, (*Server).describeSummary),
			"GetRecords":                    serve(s, (*Server).getRecords),
			"GetShardIterator":              serve(s, (*Server).getShardIterator),
			"IncreaseStreamRetentionPeriod": serve(s, (*Server).increaseRetention),
			"ListShards":                    serve(s, (*Server).listShards),
			"ListStreams":                   serve(s, (*Server).listStreams),
			"MergeShards":                   serve(s, (*Server).mergeShards),
			"PutRecord":                     serve(s, (*Server).putRecord),
			"PutRecords":                    serve(s, (*Server).putRecords),
			"SplitShard":                    serve(s, (*Server).splitShard),
		}}
	return s
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.wire.ServeHTTP(w, r) }

// Calls returns how many requests have arrived.
func (s *Server) Calls() int64 { return s.wire.Calls() }

// ARN returns the name that AWS would give to stream name.
func (s *Server) ARN(name string) string {
	return "arn:aws:kinesis:" + s.config.Region + ":" + s.config.Account + ":stream/" + name
}

// serve makes an operation of a method: the request is decoded strictly, and the server is locked while it works.
func serve[R any](s *Server, method func(*Server, R) (any, error)) wire.Operation {
	return func(_ context.Context, body []byte) (any, error) {
		var request R
		if err := json.Unmarshal(body, &request, json.RejectUnknownMembers(true)); err != nil {
			if errors.Is(err, json.ErrUnknownName) {
				return nil, invalid("this stand-in does not know a member of the request: %v; leave it out", err)
			}
			return nil, wire.Errorf("SerializationException", "%v", err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		return method(s, request)
	}
}

// target is how a request names its stream.
type target struct {
	StreamName string
	StreamARN  string
}

var nameForm = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,128}$`)

// find returns the stream that t names, with what retention has ended taken away.
func (s *Server) find(t target) (*stream, error) {
	name := t.StreamName
	if t.StreamARN != "" {
		rest, ours := strings.CutPrefix(t.StreamARN, s.ARN(""))
		if !ours {
			return nil, notFound("no stream %s in %s under account %s", t.StreamARN, s.config.Region, s.config.Account)
		}
		if name != "" && name != rest {
			return nil, refused("StreamName %s and StreamARN %s name different streams", name, t.StreamARN)
		}
		name = rest
	}
	if !nameForm.MatchString(name) {
		return nil, invalid("StreamName must match %s, or StreamARN name a stream", nameForm)
	}
	found, ok := s.streams[name]
	if !ok {
		return nil, notFound("Stream %s under account %s not found.", name, s.config.Account)
	}
	found.trim(s.config.Now())
	return found, nil
}

func invalid(format string, args ...any) error {
	return wire.Errorf("ValidationException", format, args...)
}

func refused(format string, args ...any) error {
	return wire.Errorf("InvalidArgumentException", format, args...)
}

func notFound(format string, args ...any) error {
	return wire.Errorf("ResourceNotFoundException", format, args...)
}

func exceeded(format string, args ...any) error {
	return wire.Errorf("ProvisionedThroughputExceededException", format, args...)
}
