package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"abacus/shared/deploy"
)

// stack is the name that stands before every resource's own, as CloudFormation puts it there.
const stack = "local-"

// Where everything is, as far as ARNs are concerned.
const (
	region  = "us-east-1"
	account = "000000000000"
)

func arn(service, resource string) string {
	return "arn:aws:" + service + ":" + region + ":" + account + ":" + resource
}

// make makes the plan's tables, streams and queues, and learns how each is called.
func (s *Suite) make(ctx context.Context, p *plan) error {
	var faults []error
	for _, t := range p.tables {
		faults = append(faults, s.makeTable(ctx, t))
	}
	for _, t := range p.streams {
		faults = append(faults, s.makeStream(ctx, t))
	}
	for _, q := range p.queues {
		faults = append(faults, s.makeQueue(ctx, q))
	}
	slices.Sort(s.queues)
	return errors.Join(faults...)
}

func (s *Suite) makeTable(ctx context.Context, t tablePlan) error {
	name := stack + t.name
	s.names[deploy.Reference{Resource: t.name}] = name
	s.names[deploy.Reference{Resource: t.name, Attribute: "Arn"}] = arn("dynamodb", "table/"+name)
	body := maps.Clone(t.definition)
	body["TableName"] = name
	if err := s.endpoint.call(ctx, "DynamoDB_20120810.CreateTable", body, nil); err != nil {
		return fmt.Errorf("make table %s: %w", t.name, err)
	}
	if t.ttl == "" {
		return nil
	}
	ttl := map[string]any{"AttributeName": t.ttl, "Enabled": true}
	err := s.endpoint.call(ctx, "DynamoDB_20120810.UpdateTimeToLive",
		map[string]any{"TableName": name, "TimeToLiveSpecification": ttl}, nil)
	if err != nil {
		return fmt.Errorf("make table %s: %w", t.name, err)
	}
	return nil
}

func (s *Suite) makeStream(ctx context.Context, t streamPlan) error {
	name := stack + t.name
	s.names[deploy.Reference{Resource: t.name}] = name
	s.names[deploy.Reference{Resource: t.name, Attribute: "Arn"}] = arn("kinesis", "stream/"+name)
	err := s.endpoint.call(ctx, "Kinesis_20131202.CreateStream",
		map[string]any{"StreamName": name, "ShardCount": t.shards}, nil)
	if err == nil && t.retentionHours > 24 {
		err = s.endpoint.call(ctx, "Kinesis_20131202.IncreaseStreamRetentionPeriod",
			map[string]any{"StreamName": name, "RetentionPeriodHours": t.retentionHours}, nil)
	}
	if err != nil {
		return fmt.Errorf("make stream %s: %w", t.name, err)
	}
	return nil
}

func (s *Suite) makeQueue(ctx context.Context, q queuePlan) error {
	name := stack + q.name
	attributes := map[string]string{}
	for key, value := range q.attributes {
		attributes[key] = strconv.Itoa(value)
	}
	if q.deadLetter != "" {
		policy, err := json.Marshal(map[string]any{
			"deadLetterTargetArn": arn("sqs", stack+q.deadLetter), "maxReceiveCount": q.maxReceive,
		})
		if err != nil {
			return fmt.Errorf("make queue %s: %w", q.name, err)
		}
		attributes["RedrivePolicy"] = string(policy)
	}
	var made struct{ QueueUrl string }
	body := map[string]any{"QueueName": name, "Attributes": attributes}
	if err := s.endpoint.call(ctx, "AmazonSQS.CreateQueue", body, &made); err != nil {
		return fmt.Errorf("make queue %s: %w", q.name, err)
	}
	s.queues = append(s.queues, q.name)
	s.names[deploy.Reference{Resource: q.name}] = made.QueueUrl
	s.names[deploy.Reference{Resource: q.name, Attribute: "Arn"}] = arn("sqs", name)
	s.names[deploy.Reference{Resource: q.name, Attribute: "QueueName"}] = name
	return nil
}

// layers is where Lambda unpacks layers. The template's one layer holds the rule file.
const layers = "/opt/"

// environment returns a function's variables with what only this machine knows put in.
func (s *Suite) environment(f functionPlan, rules string) (map[string]string, error) {
	env := map[string]string{"AWS_ENDPOINT_URL": s.endpoint.url}
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(f.env)) {
		switch value := f.env[name].(type) {
		case deploy.Reference:
			known, found := s.names[value]
			if !found {
				faults = append(faults, fmt.Errorf("function %s: %s refers to %v, which this machine did not make",
					f.name, name, value))
			}
			env[name] = known
		case string:
			env[name] = value
			if file, layered := strings.CutPrefix(value, layers); layered {
				env[name] = rules
				if file != filepath.Base(shippedRules) {
					faults = append(faults, fmt.Errorf("function %s: %s names %s, and the only file known in a layer is %s%s",
						f.name, name, value, layers, filepath.Base(shippedRules)))
				}
			}
		default:
			env[name] = fmt.Sprint(value)
		}
	}
	return env, errors.Join(faults...)
}
