package local

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"abacus/shared/deploy"
)

// plan is what a template makes, with resources named as the template names them.
type plan struct {
	tables    []tablePlan
	streams   []streamPlan
	queues    []queuePlan // a queue's dead-letter queue stands before it
	functions []functionPlan
	mappings  []mappingPlan
}

type tablePlan struct {
	name       string
	definition map[string]any // body of CreateTable, but for the table's name
	ttl        string         // attribute; empty: none
}

type streamPlan struct {
	name           string
	shards         int
	retentionHours int
}

type queuePlan struct {
	name       string
	attributes map[string]int // of CreateQueue
	deadLetter string         // resource; empty: none
	maxReceive int
}

type functionPlan struct {
	name     string
	timeout  time.Duration
	memoryMB int
	env      map[string]any // text, or a reference
}

// mappingPlan is one event of a function. Zero means what it means to Lambda; the numbers that Lambda reads as "without
// end" are -1.
type mappingPlan struct {
	name        string // function and event: "Kinesis.Records"
	function    string
	stream      string // one of the two
	queue       string
	batchSize   int
	window      time.Duration
	reports     bool // ReportBatchItemFailures
	concurrency int  // SQS: MaximumConcurrency; 0: no limit of its own

	start          string // Kinesis, and the rest too
	bisect         bool
	retries        int
	maxAge         time.Duration // -1 s: without end
	parallel       int
	onFailureQueue string // resource; empty: none
}

// onDemandShards is what a new on-demand stream has
// (https://docs.aws.amazon.com/streams/latest/dev/how-do-i-size-a-stream.html).
const onDemandShards = 4

// plain resources say who may do what and where logs go; one machine has no use for them.
var plain = map[string]bool{
	"AWS::IAM::Role": true, "AWS::IAM::ManagedPolicy": true, "AWS::Logs::LogGroup": true,
	"AWS::Serverless::LayerVersion": true, // Options.Rules stands for what the layer holds
}

// newPlan reads a template. It reports everything that it does not know at once.
func newPlan(v *deploy.View) (*plan, error) {
	p := &plan{}
	var faults []error
	for _, name := range v.Keys("Resources") {
		if !v.Exists(name) {
			continue
		}
		body, _ := v.At("Resources", name).(map[string]any)
		own, _ := body["Properties"].(map[string]any)
		props := &properties{owner: name, left: own}
		switch kind := body["Type"]; kind {
		case "AWS::DynamoDB::Table":
			faults = append(faults, p.addTable(name, props))
		case "AWS::Kinesis::Stream":
			faults = append(faults, p.addStream(name, props))
		case "AWS::SQS::Queue":
			faults = append(faults, p.addQueue(name, props))
		case "AWS::Serverless::Function":
			faults = append(faults, p.addFunction(name, v))
		default:
			if text, _ := kind.(string); !plain[text] {
				faults = append(faults, fmt.Errorf("%s: resources of type %v are not known here; teach package local", name, kind))
			}
		}
	}
	return p, errors.Join(append(faults, v.Err())...)
}

func (p *plan) addTable(name string, props *properties) error {
	ttl := props.group("TimeToLiveSpecification")
	t := tablePlan{name: name, definition: map[string]any{}}
	if attribute := ttl.text("AttributeName"); ttl.flag("Enabled") {
		t.ttl = attribute
	}
	for _, key := range []string{"BillingMode", "AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes"} {
		if value := props.take(key); value != nil {
			t.definition[key] = value
		}
	}
	props.ignore("SSESpecification", "PointInTimeRecoverySpecification", "DeletionProtectionEnabled")
	p.tables = append(p.tables, t)
	return errors.Join(ttl.done(), props.done())
}

func (p *plan) addStream(name string, props *properties) error {
	mode := props.group("StreamModeDetails")
	s := streamPlan{name: name, retentionHours: props.number("RetentionPeriodHours", 24)}
	s.shards = props.number("ShardCount", 0)
	if mode.text("StreamMode") == "ON_DEMAND" {
		s.shards = onDemandShards
	}
	props.ignore("StreamEncryption")
	p.streams = append(p.streams, s)
	return errors.Join(mode.done(), props.done())
}

func (p *plan) addQueue(name string, props *properties) error {
	q := queuePlan{name: name, attributes: map[string]int{}}
	for _, key := range []string{
		"VisibilityTimeout", "MessageRetentionPeriod", "DelaySeconds", "MaximumMessageSize", "ReceiveMessageWaitTimeSeconds",
	} {
		if value := props.number(key, -1); value >= 0 {
			q.attributes[key] = value
		}
	}
	redrive := props.group("RedrivePolicy")
	if len(redrive.left) > 0 {
		q.deadLetter, q.maxReceive = redrive.arn("deadLetterTargetArn"), redrive.number("maxReceiveCount", 0)
	}
	props.ignore("SqsManagedSseEnabled")
	// A dead-letter queue is made first, since its source names it.
	if q.deadLetter == "" {
		p.queues = slices.Insert(p.queues, 0, q)
	} else {
		p.queues = append(p.queues, q)
	}
	return errors.Join(redrive.done(), props.done())
}
