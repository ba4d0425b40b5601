package park

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"abacus/shared/local/loopback"
	"abacus/shared/local/queue"
	"abacus/shared/local/wire"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// parking is a queue behind the real SDK, and what was sent to it.
type parking struct {
	*Queue
	fault atomic.Pointer[func(wire.Call) wire.Fault]
	sends atomic.Int64
}

func newParking(t *testing.T) *parking {
	t.Helper()
	p := new(parking)
	server := queue.New(queue.Config{Fault: func(call wire.Call) wire.Fault {
		if call.Name == "SendMessage" {
			p.sends.Add(1)
		}
		if fault := p.fault.Load(); fault != nil && call.Name == "SendMessage" {
			return (*fault)(call)
		}
		return wire.Fault{}
	}})
	cfg := aws.Config{Region: "us-east-1", HTTPClient: loopback.Client(server),
		BaseEndpoint: aws.String("http://sqs.test"),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "s"}, nil
		})}
	made, err := sqs.NewFromConfig(cfg).CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("parked")})
	if err != nil {
		t.Fatal(err)
	}
	p.Queue = NewQueue(cfg, *made.QueueUrl)
	return p
}

func (p *parking) bodies(t *testing.T) []string {
	t.Helper()
	got, err := p.client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &p.url, MaxNumberOfMessages: 10})
	if err != nil {
		t.Fatal(err)
	}
	var bodies []string
	for _, m := range got.Messages {
		bodies = append(bodies, *m.Body)
	}
	return bodies
}

func (p *parking) breakBy(fault func(wire.Call) wire.Fault) { p.fault.Store(&fault) }

func TestPark_NilMeansThatTheQueueHasIt(t *testing.T) {
	p := newParking(t)
	document := `{"a":"` + strings.Repeat("x", 1<<20-8) + `"}`
	if err := p.Park(t.Context(), []byte(document)); err != nil {
		t.Fatal(err)
	}
	if got := p.bodies(t); len(got) != 1 || got[0] != document {
		t.Errorf("%d messages", len(got))
	}
	if err := p.Park(t.Context(), []byte(document+" ")); err == nil {
		t.Error("one byte past the limit was taken")
	}
}

func TestPark_ATransientFaultIsRiddenOut(t *testing.T) {
	for name, fault := range map[string]wire.Fault{
		"refused":    {Before: &wire.Error{Code: "InternalError", Status: 500}},
		"lost reply": {Lose: true},
		"throttled":  {Before: &wire.Error{Code: "ThrottlingException", Status: 400}},
	} {
		p := newParking(t)
		first := true
		p.breakBy(func(wire.Call) wire.Fault {
			if !first {
				return wire.Fault{}
			}
			first = false
			return fault
		})
		if err := p.Park(t.Context(), []byte("document")); err != nil || len(p.bodies(t)) == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPark_TriesAreBoundedAndTheErrorSaysWhatToDo(t *testing.T) {
	p := newParking(t)
	p.breakBy(func(wire.Call) wire.Fault {
		return wire.Fault{Before: &wire.Error{Code: "InternalError", Status: 500}}
	})
	err := p.Park(t.Context(), []byte("document"))
	if err == nil || !strings.Contains(err.Error(), "check that it exists") || p.sends.Load() != attempts {
		t.Errorf("%v after %d tries", err, p.sends.Load())
	}
	p.url += "-gone"
	p.breakBy(func(wire.Call) wire.Fault { return wire.Fault{} })
	if err := p.Park(t.Context(), []byte("document")); err == nil {
		t.Error("a queue that is not there took a document")
	}
}

func TestPark_EndsWithItsContext(t *testing.T) {
	p := newParking(t)
	p.breakBy(func(wire.Call) wire.Fault { return wire.Fault{Hang: true} })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := p.Park(ctx, []byte("document")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want the context's error", err)
	}
}
