package local

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"abacus/shared/deploy"
)

// queueConcurrency is how many batches of a standard queue are worked on at one time, at first
// (https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html).
const queueConcurrency = 5

// fromGlobals are the properties of a function that Globals may give too.
var fromGlobals = []string{"Timeout", "MemorySize", "Environment", "Runtime", "Handler"}

func (p *plan) addFunction(name string, v *deploy.View) error {
	own, _ := v.At("Resources", name, "Properties").(map[string]any)
	props := &properties{owner: name, left: own}
	for _, key := range fromGlobals {
		props.left[key] = v.Function(name, key)
	}
	f := functionPlan{
		name: name, memoryMB: props.number("MemorySize", 128),
		timeout: time.Duration(props.number("Timeout", 3)) * time.Second,
	}
	if props.text("Runtime") != "provided.al2023" {
		props.fail("its runtime is not provided.al2023; one machine runs bootstrap binaries only")
	}
	environment := props.group("Environment")
	f.env, _ = environment.take("Variables").(map[string]any)
	props.ignore("Handler", "CodeUri", "Description", "Role", "Architectures", "Layers", "LoggingConfig", "Policies")
	p.functions = append(p.functions, f)
	faults := []error{environment.done()}
	events := props.group("Events")
	for _, event := range v.Keys("Resources", name, "Properties", "Events") {
		faults = append(faults, p.addMapping(name, event, events.group(event)))
	}
	return errors.Join(append(faults, events.done(), props.done())...)
}

func (p *plan) addMapping(function, event string, body *properties) error {
	kind, props := body.text("Type"), body.group("Properties")
	m := mappingPlan{
		name: function + "." + event, function: function,
		window: time.Duration(props.number("MaximumBatchingWindowInSeconds", 0)) * time.Second,
	}
	m.reports = len(props.texts("FunctionResponseTypes", "ReportBatchItemFailures")) > 0
	props.ignore("MetricsConfig")
	var inner error
	switch kind {
	case "Kinesis":
		inner = m.fromKinesis(props)
	case "SQS":
		scaling := props.group("ScalingConfig")
		m.queue, m.batchSize = props.arn("Queue"), props.number("BatchSize", 10)
		m.concurrency = scaling.number("MaximumConcurrency", 0)
		inner = scaling.done()
	default:
		body.fail("events of type %q are not known here; teach package local", kind)
	}
	p.mappings = append(p.mappings, m)
	return errors.Join(inner, props.done(), body.done())
}

func (m *mappingPlan) fromKinesis(props *properties) error {
	m.stream, m.batchSize = props.arn("Stream"), props.number("BatchSize", 100)
	m.start = props.text("StartingPosition")
	m.bisect = props.flag("BisectBatchOnFunctionError")
	m.retries = props.number("MaximumRetryAttempts", -1)
	m.maxAge = time.Duration(props.number("MaximumRecordAgeInSeconds", -1)) * time.Second
	m.parallel = props.number("ParallelizationFactor", 1)
	destination := props.group("DestinationConfig")
	failure := destination.group("OnFailure")
	if len(failure.left) > 0 {
		if kind := failure.text("Type"); kind != "SQS" {
			failure.fail("a destination of type %q is not known here; teach package local", kind)
		}
		m.onFailureQueue = failure.arn("Destination")
	}
	return errors.Join(failure.done(), destination.done())
}

// folder returns where a function's main package lives, relative to the module's root.
func (f functionPlan) folder() string { return "functions/" + strings.ToLower(f.name) }

func (p *plan) function(name string) functionPlan {
	i := slices.IndexFunc(p.functions, func(f functionPlan) bool { return f.name == name })
	return p.functions[i]
}

// concurrency returns how many invocations of a function its mappings make at one time.
func (p *plan) concurrency(function string) int {
	most := 0
	for _, m := range p.mappings {
		if m.function != function {
			continue
		}
		if m.queue != "" {
			most += cmp.Or(m.concurrency, queueConcurrency)
			continue
		}
		shards := 1
		for _, s := range p.streams {
			if s.name == m.stream {
				shards = s.shards
			}
		}
		most += shards * m.parallel
	}
	return most
}
