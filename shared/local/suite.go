package local

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"abacus/shared/deploy"
	"abacus/shared/local/queue"
	"abacus/shared/local/sandbox"
	"abacus/shared/local/stream"
	"abacus/shared/local/table"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// Suite is the whole suite at work.
type Suite struct {
	Tables  *table.Service
	Streams *stream.Server
	Queues  *queue.Server

	options   Options
	endpoint  *endpoint
	clock     clock // of the queues
	names     map[deploy.Reference]string
	functions map[string]*sandbox.Function
	mappings  map[string]poller
	queues    []string // names in the template, sorted

	stopMappings context.CancelFunc
	polling      sync.WaitGroup

	mu  sync.Mutex
	err error
}

// Start makes everything that the template asks for and sets it to work. The caller must Close the suite. Its error
// names everything that is wrong with the template.
func Start(ctx context.Context, o Options) (*Suite, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	p, err := o.plan()
	if err != nil {
		return nil, err
	}
	s := newSuite(o)
	if err := s.start(ctx, p); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func newSuite(o Options) *Suite {
	return &Suite{
		options: o, names: map[deploy.Reference]string{},
		functions: map[string]*sandbox.Function{}, mappings: map[string]poller{},
	}
}

func (s *Suite) start(ctx context.Context, p *plan) error {
	s.Tables = table.New(table.Config{})
	s.Tables.Fault = s.options.TableFault
	s.Streams = stream.New(stream.Config{Region: region, Account: account, Fault: s.options.StreamFault})
	s.Queues = queue.New(queue.Config{
		Region: region, Account: account, Now: s.clock.Now, After: s.clock.After, Fault: s.options.QueueFault,
	})
	var err error
	s.endpoint, err = listen(s.options.Address, map[string]http.Handler{
		"DynamoDB_20120810": s.Tables, "Kinesis_20131202": s.Streams, "AmazonSQS": s.Queues,
	})
	if err != nil {
		return err
	}
	if err := s.make(ctx, p); err != nil {
		return err
	}
	if err := s.startFunctions(ctx, p); err != nil {
		return err
	}
	return s.poll(p)
}

func (s *Suite) startFunctions(ctx context.Context, p *plan) error {
	folders := make([]string, len(p.functions))
	for i, f := range p.functions {
		folders[i] = f.folder()
	}
	executables, err := build(ctx, s.options.Root, s.options.Build, folders)
	if err != nil {
		return err
	}
	for i, f := range p.functions {
		env, err := s.environment(f, s.options.Rules)
		if err != nil {
			return err
		}
		config := sandbox.Config{
			Name: stack + f.name, Bootstrap: executables[i], Env: env, Timeout: cmp.Or(s.options.FunctionTimeout, f.timeout), MemoryMB: f.memoryMB,
			Concurrency: p.concurrency(f.name),
			Region:      region, Account: account, Log: s.options.Log, Report: s.options.Report,
		}
		if s.options.FunctionFault != nil {
			config.Fault = func(call sandbox.Call) sandbox.Fault { return s.options.FunctionFault(f.name, call) }
		}
		if s.functions[f.name], err = sandbox.New(config); err != nil {
			return err
		}
	}
	return nil
}

// Close ends everything: pollers, processes, listener. When it returns nothing is left.
func (s *Suite) Close() error {
	var faults []error
	if s.stopMappings != nil {
		s.stopMappings()
	}
	// Functions go first: what they are working on is given up, and so are the mappings that wait for it.
	for _, f := range s.functions {
		faults = append(faults, f.Close())
	}
	s.polling.Wait()
	if s.endpoint != nil {
		faults = append(faults, s.endpoint.close())
	}
	return errors.Join(faults...)
}

// URL returns the address of the stand-ins: what AWS_ENDPOINT_URL has to be for a program that is to use them.
func (s *Suite) URL() string { return s.endpoint.url }

// Name returns what a resource of the template is called here: a table's or a stream's name, or a queue's URL; empty
// where there is no such resource.
func (s *Suite) Name(resource string) string { return s.names[deploy.Reference{Resource: resource}] }

// Resources returns the names of all that Name knows, sorted.
func (s *Suite) Resources() []string {
	var names []string
	for r := range s.names {
		if r.Attribute == "" {
			names = append(names, r.Resource)
		}
	}
	slices.Sort(names)
	return names
}

// Function returns a function by its name in the template, or nil.
func (s *Suite) Function(name string) *sandbox.Function { return s.functions[name] }

// Call runs one operation of a stand-in, such as "AmazonSQS.ReceiveMessage", without an SDK: in and out are its
// request and its answer as JSON.
func (s *Suite) Call(ctx context.Context, target string, in, out any) error {
	return s.endpoint.call(ctx, target, in, out)
}

// SkipQueues puts the clock of the queues forward, so that messages become visible again that would stay hidden for
// minutes. Nothing else learns of it.
func (s *Suite) SkipQueues(d time.Duration) { s.clock.Skip(d) }

// Config returns what an AWS SDK client needs to use the suite. It never retries, so that nothing is sent twice unseen.
func (s *Suite) Config() aws.Config {
	keys := aws.Credentials{AccessKeyID: "local", SecretAccessKey: "local", Source: "the suite on this machine"}
	return aws.Config{
		Region: region, BaseEndpoint: aws.String(s.endpoint.url),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return keys, nil }),
		Retryer:     func() aws.Retryer { return aws.NopRetryer{} },
	}
}
