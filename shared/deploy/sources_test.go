package deploy

import (
	"reflect"
	"slices"
	"time"
)

// mapping is one event of one function: a source that invokes it.
type mapping struct{ function, event string }

func mappings(v *View) []mapping {
	var all []mapping
	for _, function := range v.OfType("AWS::Serverless::Function") {
		for _, event := range v.Keys("Resources", function, "Properties", "Events") {
			all = append(all, mapping{function, event})
		}
	}
	return all
}

func (m mapping) kind(v *View) any {
	return v.At("Resources", m.function, "Properties", "Events", m.event, "Type")
}

func (m mapping) at(v *View, path ...string) any {
	return v.At(slices.Concat([]string{"Resources", m.function, "Properties", "Events", m.event, "Properties"}, path)...)
}

// number returns an integer, or -1 for anything else, which no rule below accepts.
func number(value any) int {
	if n, isInt := value.(int); isInt {
		return n
	}
	return -1
}

func seconds(value any) time.Duration { return time.Duration(number(value)) * time.Second }

// made returns the resource of the stack that the value refers to, or "" where the source is the user's own.
func made(value any) string {
	reference, _ := value.(Reference)
	return reference.Resource
}

func isFifo(v *View, queue any) bool {
	if name := made(queue); name != "" {
		return v.At("Resources", name, "Properties", "FifoQueue") == true
	}
	return v.At("Conditions", "FifoQueue") == true
}

// checkH1 holds the timings of every queue mapping
// (https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html).
func checkH1(v *View, o *objections) {
	for _, m := range mappings(v) {
		if m.kind(v) != "SQS" {
			continue
		}
		queue, window := m.at(v, "Queue"), m.at(v, "MaximumBatchingWindowInSeconds")
		batch, timeout := number(m.at(v, "BatchSize")), seconds(v.Function(m.function, "Timeout"))
		o.unless(timeout > 0 && timeout <= 15*time.Minute, "%s: timeout %v is not in 1 s to 15 min", m.function, timeout)
		if isFifo(v, queue) {
			o.unless(batch >= 1 && batch <= 10, "%s: a FIFO queue has batches of 1 to 10, not %d", m.event, batch)
			o.unless(window == nil, "%s: a FIFO queue has no batching window", m.event)
		} else {
			o.unless(batch >= 1 && batch <= 10000, "%s: batch size %d is not in 1 to 10,000", m.event, batch)
			o.unless(batch <= 10 || number(window) >= 1, "%s: batches above 10 need a window of 1 s", m.event)
			o.unless(number(window) <= 300, "%s: window %v is above 300 s", m.event, window)
		}
		if name := made(queue); name != "" {
			polledAsFifo := v.At("Conditions", "FifoQueue") == true
			o.unless(isFifo(v, queue) == polledAsFifo, "%s: is polled as the other kind of queue", name)
			visibility := seconds(v.At("Resources", name, "Properties", "VisibilityTimeout"))
			least := 6*timeout + max(0, seconds(window))
			o.unless(visibility >= least, "%s: visibility %v is below 6 x timeout + window = %v", name, visibility, least)
			o.unless(visibility <= 12*time.Hour, "%s: visibility %v is above 12 h", name, visibility)
		}
	}
}

// checkH2 holds what keeps a message that was never worked on out of the dead-letter queue, and a failing one in.
func checkH2(v *View, o *objections) {
	for _, m := range mappings(v) {
		scaling := m.at(v, "ScalingConfig", "MaximumConcurrency")
		if m.kind(v) != "SQS" {
			o.unless(scaling == nil, "%s: ScalingConfig is for queues only", m.event)
			continue
		}
		most := number(scaling)
		o.unless(most >= 2 && most <= 1000, "%s: MaximumConcurrency %v is not in 2 to 1000", m.event, scaling)
		if reserved := v.Function(m.function, "ReservedConcurrentExecutions"); reserved != nil {
			o.unless(most <= number(reserved), "%s: polls for more than the reserved concurrency", m.event)
		}
		name := made(m.at(v, "Queue"))
		if name == "" {
			continue
		}
		receives := number(v.At("Resources", name, "Properties", "RedrivePolicy", "maxReceiveCount"))
		o.unless(receives >= 5, "%s: maxReceiveCount %d is below 5", name, receives)
		dead := made(v.At("Resources", name, "Properties", "RedrivePolicy", "deadLetterTargetArn"))
		o.unless(slices.Contains(v.OfType("AWS::SQS::Queue"), dead), "%s: has no dead-letter queue", name)
		visibility := seconds(v.At("Resources", name, "Properties", "VisibilityTimeout"))
		retention := seconds(v.At("Resources", name, "Properties", "MessageRetentionPeriod"))
		o.unless(time.Duration(receives)*visibility < retention,
			"%s: a message expires after %v, before its %d receives, %v apart, are over", name, retention, receives, visibility)
	}
}

// checkH3 holds that the answers of the functions are read at all.
func checkH3(v *View, o *objections) {
	o.unless(len(mappings(v)) > 0, "no function has a source")
	for _, m := range mappings(v) {
		o.unless(reflect.DeepEqual(m.at(v, "FunctionResponseTypes"), []any{"ReportBatchItemFailures"}),
			"%s: without ReportBatchItemFailures a reported failure counts as success", m.event)
	}
}

// A failed batch's notice names a place in the stream, so it must be read again before the stream forgets: replayTime
// is what an operator has for it at the least.
const replayTime = 24 * time.Hour

// checkH4 holds that a stream's retries end, somewhere that keeps them, while the records still exist.
func checkH4(v *View, o *objections) {
	for _, m := range mappings(v) {
		if m.kind(v) != "Kinesis" {
			continue
		}
		tries, age := number(m.at(v, "MaximumRetryAttempts")), seconds(m.at(v, "MaximumRecordAgeInSeconds"))
		guard := v.At("Resources", m.function, "Properties", "Environment", "Variables", "ABACUS_GUARD")
		if guard == "position" {
			o.unless(tries == -1 && age == -time.Second,
				"%s: a batch given up under the position guard cannot be told from one that was counted", m.event)
			o.unless(m.at(v, "ParallelizationFactor") == 1, "%s: one batch of a shard at a time", m.event)
		} else {
			o.unless(tries >= 100 && tries <= 10000,
				"%s: %d retries; it takes 100 to outlast a claim that is held, and above 10,000 there is no end", m.event, tries)
			o.unless(age >= time.Minute && age <= 7*24*time.Hour, "%s: record age %v is not finite", m.event, age)
		}
		o.unless(m.at(v, "BisectBatchOnFunctionError") == true, "%s: does not split a failing batch", m.event)
		o.unless(m.at(v, "TumblingWindowInSeconds") == nil, "%s: a tumbling window wants a state in the answer", m.event)
		if name := made(m.at(v, "Stream")); name != "" {
			hours := number(v.At("Resources", name, "Properties", "RetentionPeriodHours"))
			retention := time.Duration(hours) * time.Hour
			o.unless(age < retention-replayTime,
				"%s: age %v leaves less than %v of %v to replay", m.event, age, replayTime, retention)
		}
		checkFailureDestination(v, o, m)
	}
}

func checkFailureDestination(v *View, o *objections, m mapping) {
	to, _ := m.at(v, "DestinationConfig", "OnFailure").(map[string]any)
	queue := made(to["Destination"])
	at := func(property string) any { return v.At("Resources", queue, "Properties", property) }
	may := func(grant string) bool { return slices.Contains(grants(v, m.function), grant) }
	isQueue := to["Type"] == "SQS" && slices.Contains(v.OfType("AWS::SQS::Queue"), queue)
	o.unless(isQueue, "%s: failed batches go nowhere", m.event)
	o.unless(at("FifoQueue") != true, "%s: a FIFO queue takes no failure notice", m.event)
	o.unless(may("sqs:SendMessage "+queue+".Arn"), "%s: the function's role may not send to %s", m.event, queue)
	if key := at("KmsMasterKeyId"); key != nil {
		o.unless(may("kms:GenerateDataKey "+target(key)), "%s: the function's role may not use the key of %s", m.event, queue)
	}
}
