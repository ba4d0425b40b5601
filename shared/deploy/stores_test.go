package deploy

import (
	"reflect"
	"slices"
	"time"

	"abacus/shared/tally"
)

// checkTables holds the schema that package dynamo writes, and what keeps the tables' content.
func checkTables(v *View, o *objections) {
	schema := map[string][]any{
		"CountersTable": {
			map[string]any{"AttributeName": "pk", "KeyType": "HASH"},
			map[string]any{"AttributeName": "sk", "KeyType": "RANGE"},
		},
		"DedupTable": {map[string]any{"AttributeName": "pk", "KeyType": "HASH"}},
	}
	tables := v.OfType("AWS::DynamoDB::Table")
	o.unless(slices.Equal(tables, []string{"CountersTable", "DedupTable"}), "tables are %v", tables)
	for _, table := range tables {
		at := func(path ...string) any {
			return v.At(slices.Concat([]string{"Resources", table, "Properties"}, path)...)
		}
		o.unless(reflect.DeepEqual(at("KeySchema"), schema[table]), "%s: key schema is %v", table, at("KeySchema"))
		definitions, _ := at("AttributeDefinitions").([]any)
		for _, d := range definitions {
			o.unless(d.(map[string]any)["AttributeType"] == "S", "%s: key attribute %v is no string", table, d)
		}
		o.unless(len(definitions) == len(schema[table]), "%s: defines %d attributes", table, len(definitions))
		o.unless(at("BillingMode") == "PAY_PER_REQUEST", "%s: is not on demand", table)
		o.unless(at("TimeToLiveSpecification", "AttributeName") == "ttl" && at("TimeToLiveSpecification", "Enabled") == true,
			"%s: rows do not expire by the attribute ttl", table)
		o.unless(at("SSESpecification", "SSEEnabled") == true, "%s: is not encrypted under a KMS key", table)
		recovery := at("PointInTimeRecoverySpecification", "PointInTimeRecoveryEnabled")
		o.unless(recovery == true, "%s: no point-in-time recovery", table)
		o.unless(at("DeletionProtectionEnabled") != nil, "%s: deletion protection is left open", table)
	}
}

// checkKept holds that nothing that may carry the only copy of an event or a count goes away with the stack or with a
// replacement of the resource. Only the stream does, with the stack: it costs money by the hour.
func checkKept(v *View, o *objections) {
	for _, name := range slices.Concat(v.OfType("AWS::DynamoDB::Table"), v.OfType("AWS::SQS::Queue")) {
		o.unless(v.At("Resources", name, "DeletionPolicy") == "Retain", "%s: goes with the stack", name)
		o.unless(v.At("Resources", name, "UpdateReplacePolicy") == "Retain", "%s: goes with its replacement", name)
	}
	for _, name := range v.OfType("AWS::Kinesis::Stream") {
		o.unless(v.At("Resources", name, "UpdateReplacePolicy") == "Retain", "%s: goes with its replacement", name)
	}
}

// checkEncrypted holds that every queue and stream is encrypted at rest.
func checkEncrypted(v *View, o *objections) {
	for _, name := range v.OfType("AWS::SQS::Queue") {
		own := v.At("Resources", name, "Properties", "KmsMasterKeyId") != nil
		o.unless(own || v.At("Resources", name, "Properties", "SqsManagedSseEnabled") == true, "%s: is not encrypted", name)
	}
	for _, name := range v.OfType("AWS::Kinesis::Stream") {
		encryption := v.At("Resources", name, "Properties", "StreamEncryption")
		want := map[string]any{"EncryptionType": "KMS", "KeyId": "alias/aws/kinesis"}
		o.unless(reflect.DeepEqual(encryption, want), "%s: encryption is %v", name, encryption)
	}
}

// A redrive moves messages back for 36 hours at most
// (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_StartMessageMoveTask.html).
const moveTask = 36 * time.Hour

// checkA7 holds that an event is remembered for longer than any way lasts on which it can come again. Each way is taken
// at its longest, from the first moment at which the event can have been counted.
func checkA7(v *View, o *objections) {
	text, _ := v.At("Globals", "Function", "Environment", "Variables", "ABACUS_DEDUP_HORIZON").(string)
	horizon, err := tally.ParseDuration(text)
	o.unless(err == nil, "ABACUS_DEDUP_HORIZON: %v", err)
	var stream, queue, dead time.Duration
	if v.Exists("Stream") {
		stream = time.Duration(number(v.At("Resources", "Stream", "Properties", "RetentionPeriodHours"))) * time.Hour
	}
	if v.Exists("Queue") {
		queue = seconds(v.At("Resources", "Queue", "Properties", "MessageRetentionPeriod"))
		dead = seconds(v.At("Resources", made(deadLetters(v)), "Properties", "MessageRetentionPeriod"))
		// A standard queue's message keeps its enqueue time when it moves, so the second retention must be the longer.
		o.unless(dead > queue, "dead letters are kept for %v, no longer than %v in the queue", dead, queue)
	}
	parked := seconds(v.At("Resources", "ParkQueue", "Properties", "MessageRetentionPeriod"))
	o.unless(parked == 14*24*time.Hour, "parked records are kept for %v, not for the 14 days that SQS allows", parked)

	redrive := moveTask + queue // after the move the message has a whole retention before it again
	ways := map[string]time.Duration{
		"stream, queue, dead letters and a redrive":       stream + queue + dead + redrive,
		"dead letters twice, with a redrive between them": max(queue, dead) + moveTask + max(queue, dead),
		"stream and park queue":                           stream + parked,
	}
	for way, long := range ways {
		o.unless(horizon > long, "an event is remembered for %v, but can come again after %v: %s", horizon, long, way)
	}
}

func deadLetters(v *View) any {
	return v.At("Resources", "Queue", "Properties", "RedrivePolicy", "deadLetterTargetArn")
}
