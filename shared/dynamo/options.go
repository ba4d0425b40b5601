package dynamo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Defaults of Options.
const (
	DefaultCallTimeout = 3 * time.Second
	DefaultParallel    = 8
)

// idleConnections is how many connections to the endpoint are kept for the next call. The SDK's own ten are fewer than
// one merge has calls in flight, and a new TLS connection costs more than a write.
const idleConnections = 64

// Options says how a Store or a Reader works.
type Options struct {
	Client   *dynamodb.Client // from NewClient; required
	Counters string           // name of the counters table; required
	Dedup    string           // name of the dedup table; a Reader needs none

	Now         func() time.Time // the wall clock that a Reader compares a ttl with; nil: time.Now
	CallTimeout time.Duration    // longest single request; 0: 3 s
	Parallel    int              // batches of claims, or queries, in flight for one call; 0: 8

	// SingleClaims puts claims one by one from the start, for an endpoint whose BatchExecuteStatement is known not to
	// work. One that answers that it does not know the operation, or may not be asked for it, is recognised without.
	SingleClaims bool
	// Meter, if set, is told of each request once it has ended. It is called by many goroutines.
	Meter func(Usage)
}

// Usage is what one request cost.
type Usage struct {
	Operation   string  // such as "TransactWriteItems"
	Read, Write float64 // capacity units as DynamoDB reports them; it reports none for a request that failed
	Err         error   // nil for one that succeeded
}

// NewClient returns a client that never retries by itself, since a retry that nobody sees can hide what became of the
// first try; retries belong to package merge. Endpoints come from cfg, and so from AWS_ENDPOINT_URL_DYNAMODB and
// AWS_ENDPOINT_URL.
func NewClient(cfg aws.Config) *dynamodb.Client {
	return dynamodb.NewFromConfig(cfg, neverRetry, func(o *dynamodb.Options) {
		// The SDK does nothing about a wrong checksum but log it, and takes each answer without one for wrong.
		o.DisableValidateResponseChecksum = true
		if client, ok := o.HTTPClient.(*awshttp.BuildableClient); ok {
			o.HTTPClient = client.WithTransportOptions(func(t *http.Transport) { t.MaxIdleConnsPerHost = idleConnections })
		}
	})
}

func neverRetry(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }

var tableName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{3,255}$`)

// link makes requests: each with a deadline of its own, one attempt, and a line on the meter.
type link struct {
	client  *dynamodb.Client
	timeout time.Duration
	now     func() time.Time
	meter   func(Usage)
	options func(*dynamodb.Options) // of each request
	sleep   func(context.Context, time.Duration) error
}

// complete fills in the defaults and returns every fault of o at once.
func (o *Options) complete(needsDedup bool) (link, error) {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if o.Client == nil {
		fault("no client: pass one from NewClient")
	}
	if o.Client != nil && o.Client.Options().Region == "" {
		fault("no region: set AWS_REGION")
	}
	for what, name := range map[string]string{"counters": o.Counters, "dedup": o.Dedup} {
		if name == "" && what == "dedup" && !needsDedup {
			continue
		}
		if !tableName.MatchString(name) {
			fault("%s table %q: give a name of 3 to 255 letters, digits, '_', '-' and '.', not an ARN", what, name)
		}
	}
	if o.Counters == o.Dedup {
		fault("counters and dedup table are both %q: give two tables", o.Counters)
	}
	if o.CallTimeout < 0 || o.Parallel < 0 {
		fault("call timeout %v, parallel %d: give positive numbers, or 0 for the defaults", o.CallTimeout, o.Parallel)
	}
	if o.CallTimeout == 0 {
		o.CallTimeout = DefaultCallTimeout
	}
	if o.Parallel == 0 {
		o.Parallel = DefaultParallel
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if err := errors.Join(faults...); err != nil {
		return link{}, fmt.Errorf("dynamo options: %w", err)
	}
	return link{
		client: o.Client, timeout: o.CallTimeout, now: o.Now, meter: o.Meter, options: neverRetry, sleep: sleep,
	}, nil
}

var errNoAnswer = errors.New("no answer in time")

// ask makes one request. A connection that hangs ends after the link's timeout while ctx lives on.
func ask[I, O any](
	ctx context.Context, l *link, operation string,
	request func(context.Context, *I, ...func(*dynamodb.Options)) (*O, error), in *I,
) (*O, error) {
	within, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	out, err := request(within, in, l.options)
	if err != nil && ctx.Err() == nil && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)) {
		// The deadline was the link's own. It must not pass for the caller's, which would end all retries.
		err = fmt.Errorf("%w: waited %v", errNoAnswer, l.timeout)
	}
	if l.meter != nil {
		var usage Usage
		if err == nil {
			usage = consumed(out)
		}
		usage.Operation, usage.Err = operation, err
		l.meter(usage)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Waits of reads that are tried again, and of keys that were left unprocessed.
const (
	firstWait = 25 * time.Millisecond
	maxWait   = time.Second
	maxRounds = 6
)

// wait waits before round of a read, a random time up to a bound that doubles; not at all before round 0.
func (l *link) wait(ctx context.Context, round int) error {
	if round == 0 {
		return ctx.Err()
	}
	bound := min(firstWait<<min(round-1, 10), maxWait)
	return l.sleep(ctx, rand.N(bound+1))
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
