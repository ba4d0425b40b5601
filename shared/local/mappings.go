package local

import (
	"context"
	"errors"
	"fmt"

	"abacus/shared/deploy"
	"abacus/shared/local/mapping"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// poller is an event source mapping at work.
type poller interface {
	Run(ctx context.Context) error
	Stats() mapping.Stats
	Drained(ctx context.Context) error
}

// poll makes the plan's mappings and sets them to work.
func (s *Suite) poll(p *plan) error {
	var faults []error
	for _, m := range p.mappings {
		made, err := s.newMapping(m, p.function(m.function))
		if err != nil {
			faults = append(faults, fmt.Errorf("mapping %s: %w", m.name, err))
			continue
		}
		s.mappings[m.name] = made
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stopMappings = stop
	for name, m := range s.mappings {
		s.polling.Go(func() {
			if err := m.Run(ctx); err != nil {
				s.fail(fmt.Errorf("mapping %s: %w", name, err))
			}
		})
	}
	return nil
}

func (s *Suite) newMapping(m mappingPlan, f functionPlan) (poller, error) {
	invoke := s.functions[m.function].Invoke
	pace := s.options.Pace
	if m.queue != "" {
		return mapping.NewSQS(mapping.SQSConfig{
			Client: sqs.NewFromConfig(s.Config()), Queue: s.Name(m.queue), Invoke: invoke,
			BatchSize: m.batchSize, BatchingWindow: m.window, MaximumConcurrency: m.concurrency,
			ReportBatchItemFailures: m.reports, FunctionTimeout: f.timeout, Pace: pace,
		})
	}
	c := mapping.KinesisConfig{
		Client: kinesis.NewFromConfig(s.Config()), Stream: s.arn(m.stream), Invoke: invoke,
		Function: arn("lambda", "function:"+stack+m.function), StartingPosition: m.start,
		BatchSize: m.batchSize, BatchingWindow: m.window, ParallelizationFactor: m.parallel,
		MaximumRetryAttempts: m.retries, MaximumRecordAge: m.maxAge, BisectBatchOnFunctionError: m.bisect,
		ReportBatchItemFailures: m.reports, Pace: pace,
	}
	if m.onFailureQueue != "" {
		c.OnFailure, c.Queues = s.arn(m.onFailureQueue), sqs.NewFromConfig(s.Config())
	}
	return mapping.NewKinesis(c)
}

func (s *Suite) arn(resource string) string {
	return s.names[deploy.Reference{Resource: resource, Attribute: "Arn"}]
}

// fail keeps the first trouble that nobody waits for; see Suite.Err.
func (s *Suite) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
}

// Err returns what stopped a mapping, or nil while all are at work.
func (s *Suite) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Drained waits until every mapping has nothing left to do: what was in the streams and queues when it was called is
// counted, refused or given up. It returns the error of ctx if that ends first; Status then says what is left.
func (s *Suite) Drained(ctx context.Context) error {
	for name, m := range s.mappings {
		if err := m.Drained(ctx); err != nil {
			return fmt.Errorf("mapping %s: %w", name, err)
		}
	}
	return nil
}
