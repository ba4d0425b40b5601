package deploy

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
)

type rule struct {
	name  string
	check func(*View, *objections)
}

// The rules that the template keeps, under every setting that its parameters allow.
var everyRule = []rule{
	{"H1 queue timings and batch limits", checkH1},
	{"H2 no way straight into the dead-letter queue", checkH2},
	{"H3 partial answers are read", checkH3},
	{"H4 stream retries end in a queue", checkH4},
	{"A7 an event is remembered longer than it can come again", checkA7},
	{"roles allow exactly what is needed", checkRoles},
	{"tables", checkTables},
	{"what holds events or counts is kept", checkKept},
	{"encryption at rest", checkEncrypted},
	{"functions", checkFunctions},
	{"rule file in a layer of its own", checkRuleFile},
	{"environment", checkEnvironment},
	{"no public endpoint", checkPrivate},
}

func TestTemplate_KeepsItsRulesUnderEverySetting(t *testing.T) {
	template := theTemplate(t)
	for _, rule := range everyRule {
		t.Run(rule.name, func(t *testing.T) {
			found, runs := everySetting(template, rule.check)
			for _, objection := range found {
				t.Error(objection)
			}
			t.Logf("%d settings", runs)
		})
	}
}

func TestTemplate_ProtectsTheTablesUnlessToldOtherwise(t *testing.T) {
	v := theTemplate(t).View(nil)
	for _, table := range v.OfType("AWS::DynamoDB::Table") {
		if got := v.At("Resources", table, "Properties", "DeletionProtectionEnabled"); got != "true" {
			t.Errorf("%s: deletion protection is %v by default", table, got)
		}
	}
}

// mutation is one mistake: the value at path is replaced, or removed where value is nil.
type mutation struct {
	rule  string // first word or words of the rule that must object
	path  string
	value any
}

var mutations = []mutation{
	{"H1", "Mappings.QueueTimings.30.Visibility", 30},
	{"H1", "Mappings.QueueTimings.120.Visibility", 739},
	{"H1", "Mappings.QueueTimings.120", nil},
	{"H1", "Resources.Queue.Properties.VisibilityTimeout", nil},
	{"H1", "Resources.Queue.Properties.VisibilityTimeout", 380}, // enough by default, not for the longest timeout
	{"H1", "Parameters.SqsBatchWindow.MaxValue", 21},
	{"H1", "Parameters.SqsBatchWindow.MinValue", 0},
	{"H1", "Parameters.SqsBatchSize.MaxValue", 10001},
	{"H1", "Resources.Sqs.Properties.Events.Messages.Properties.BatchSize", map[string]any{"Ref": "SqsBatchSize"}},
	{"H1", "Resources.Sqs.Properties.Events.Messages.Properties.MaximumBatchingWindowInSeconds", 1},
	{"H1", "Rules.FifoIsYours", map[string]any{"Assertions": []any{}}},
	{"H1", "Globals.Function.Timeout", 1000},
	{"H1", "Resources.Sqs.Properties.Timeout", 130},
	{"H2", "Parameters.MaxReceiveCount.MinValue", 4},
	{"H2", "Parameters.MaxReceiveCount.MaxValue", 1000},
	{"H2", "Resources.Queue.Properties.RedrivePolicy", nil},
	{"H2", "Resources.Queue.Properties.MessageRetentionPeriod", 3600},
	{"H2", "Resources.Sqs.Properties.Events.Messages.Properties.ScalingConfig", nil},
	{"H2", "Resources.Sqs.Properties.ReservedConcurrentExecutions", 5},
	{"H2", "Parameters.SqsMaxConcurrency.MinValue", 1},
	{"H2", "Resources.Kinesis.Properties.Events.Records.Properties.ScalingConfig.MaximumConcurrency", 2},
	{"H3", "Resources.Sqs.Properties.Events.Messages.Properties.FunctionResponseTypes", nil},
	{"H3", "Resources.Kinesis.Properties.Events.Records.Properties.FunctionResponseTypes", nil},
	{"H3", "Resources.Kinesis.Properties.Events.Records.Properties.FunctionResponseTypes", []any{}},
	{"H4", "Resources.Kinesis.Properties.Events.Records.Properties.MaximumRetryAttempts", nil},
	{"H4", "Resources.Kinesis.Properties.Events.Records.Properties.MaximumRetryAttempts", -1},
	{"H4", "Resources.Kinesis.Properties.Events.Records.Properties.MaximumRecordAgeInSeconds", -1},
	{"H4", "Resources.Kinesis.Properties.Events.Records.Properties.BisectBatchOnFunctionError", false},
	{"H4", "Resources.Kinesis.Properties.Events.Records.Properties.ParallelizationFactor", 2},
	{"H4", "Rules.PositionsAreInOrder", map[string]any{"Assertions": []any{}}},
	{"H4", "Resources.Kinesis.Properties.Events.Records.Properties.TumblingWindowInSeconds", 60},
	{"H4", "Resources.Kinesis.Properties.Events.Records.Properties.DestinationConfig", nil},
	{"H4", "Resources.Kinesis.Properties.Events.Records.Properties.DestinationConfig.OnFailure.Type", nil},
	{"H4", "Resources.KinesisRole.Properties.Policies.1.PolicyDocument.Statement.0.Action", "sqs:SendMessageBatch"},
	{"H4", "Resources.ParkQueue.Properties.FifoQueue", true},
	{"H4", "Resources.ParkQueue.Properties.KmsMasterKeyId", "alias/mine"},
	{"H4", "Parameters.StreamRetentionHours.MinValue", 24},
	{"H4", "Parameters.KinesisRecordAge.MaxValue", 172800},
	{"H4", "Parameters.KinesisRetryAttempts.MinValue", 0},
	{"A7", "Parameters.DedupHorizonDays.MinValue", 14},
	{"A7", "Parameters.DedupHorizonDays.MinValue", 29},
	{"A7", "Parameters.StreamRetentionHours.MaxValue", 720},
	{"A7", "Resources.Queue.Properties.MessageRetentionPeriod", 1209600},
	{"A7", "Resources.DeadLetterQueue.Properties.MessageRetentionPeriod", 345600},
	{"A7", "Resources.ParkQueue.Properties.MessageRetentionPeriod", nil},
	{"A7", "Globals.Function.Environment.Variables.ABACUS_DEDUP_HORIZON", "35 days"},
	{"roles", "Resources.Kinesis.Properties.Role", nil},
	{"roles", "Resources.Sqs.Properties.Role", map[string]any{"Fn::GetAtt": []any{"KinesisRole", "Arn"}}},
	{"roles", "Resources.SqsRole.Properties.AssumeRolePolicyDocument.Statement.0.Principal", "*"},
	{"roles", "Resources.CountPolicy.Properties.PolicyDocument.Statement.0.Resource", "*"},
	{"roles", "Resources.CountPolicy.Properties.PolicyDocument.Statement.0.Action", "dynamodb:*"},
	{"roles", "Resources.SqsRole.Properties.ManagedPolicyArns", nil},
	{"roles", "Resources.SqsRole.Properties.ManagedPolicyArns.0", "arn:aws:iam::aws:policy/AdministratorAccess"},
	{"roles", "Resources.KinesisRole.Properties.Policies.0.PolicyDocument.Statement.1", nil},
	{"roles", "Resources.SqsRole.Properties.Policies.0.PolicyDocument.Statement.0.Effect", "Deny"},
	{"tables", "Resources.DedupTable.Properties.TimeToLiveSpecification", nil},
	{"tables", "Resources.CountersTable.Properties.TimeToLiveSpecification.AttributeName", "expires"},
	{"tables", "Resources.CountersTable.Properties.TimeToLiveSpecification.Enabled", false},
	{"tables", "Resources.CountersTable.Properties.KeySchema.1", nil},
	{"tables", "Resources.CountersTable.Properties.AttributeDefinitions.1.AttributeType", "N"},
	{"tables", "Resources.DedupTable.Properties.BillingMode", "PROVISIONED"},
	{"tables", "Resources.DedupTable.Properties.SSESpecification", nil},
	{"tables", "Resources.DedupTable.Properties.PointInTimeRecoverySpecification", nil},
	{"tables", "Resources.CountersTable.Properties.DeletionProtectionEnabled", nil},
	{"what holds", "Resources.CountersTable.DeletionPolicy", nil},
	{"what holds", "Resources.DeadLetterQueue.DeletionPolicy", "Delete"},
	{"what holds", "Resources.Stream.UpdateReplacePolicy", nil},
	{"encryption", "Resources.Queue.Properties.SqsManagedSseEnabled", nil},
	{"encryption", "Resources.Stream.Properties.StreamEncryption", nil},
	{"functions", "Globals.Function.Architectures", []any{"x86_64"}},
	{"functions", "Resources.Sqs.Properties.LoggingConfig.LogGroup", map[string]any{"Ref": "KinesisLogGroup"}},
	{"functions", "Resources.SqsLogGroup.Properties.RetentionInDays", nil},
	{"functions", "Resources.Kinesis.Metadata", nil},
	{"rule file", "Globals.Function.Layers", nil},
	{"rule file", "Resources.RulesLayer.Metadata", nil},
	{"rule file", "Globals.Function.Environment.Variables.ABACUS_RULES", "counters.yaml"},
	{"environment", "Globals.Function.Environment.Variables.ABACUS_DEDUP_TABLE", nil},
	{"environment", "Globals.Function.Environment.Variables.ABACUS_COUNTERS_TABLE", map[string]any{"Ref": "DedupTable"}},
	{"environment", "Resources.Kinesis.Properties.Environment", nil},
	{"environment", "Globals.Function.Environment.Variables.ABACUS_UNHEARD_OF", "1"},
	{"no public", "Globals.Function.FunctionUrlConfig", map[string]any{"AuthType": "NONE"}},
	{"no public", "Resources.Sqs.Properties.Events.Open", map[string]any{"Type": "HttpApi"}},
	{"no public", "Resources.Open", map[string]any{"Type": "AWS::Lambda::Permission"}},
}

func TestTemplate_EachMistakeIsObjectedTo(t *testing.T) {
	sound := theTemplate(t)
	for _, m := range mutations {
		t.Run(strings.ReplaceAll(m.rule+" "+m.path, ".", " "), func(t *testing.T) {
			root, ok := mutate(sound.root, strings.Split(m.path, "."), m.value)
			if !ok {
				t.Fatalf("nothing stands at %s", m.path)
			}
			template := &Template{root: root.(map[string]any)}
			i := slices.IndexFunc(everyRule, func(r rule) bool { return strings.HasPrefix(r.name, m.rule) })
			if found, _ := everySetting(template, everyRule[i].check); len(found) == 0 {
				t.Errorf("%s set to %v, and %q does not object", m.path, m.value, everyRule[i].name)
			}
		})
	}
}

// mutate returns a copy of the tree with the value at path replaced or removed; false if there is nothing to remove, or
// no place to set it. Maps on the way to a new value are made.
func mutate(node any, path []string, value any) (any, bool) {
	key, last := path[0], len(path) == 1
	switch at := node.(type) {
	case map[string]any:
		child, stands := at[key]
		changed := maps.Clone(at)
		if last && value == nil {
			delete(changed, key)
			return changed, stands
		}
		if !last {
			if child == nil {
				child = map[string]any{}
			}
			if child, stands = mutate(child, path[1:], value); !stands {
				return nil, false
			}
			value = child
		}
		changed[key] = value
		return changed, true
	case []any:
		i, err := strconv.Atoi(key)
		if err != nil || i >= len(at) {
			return nil, false
		}
		if last && value == nil {
			return slices.Delete(slices.Clone(at), i, i+1), true
		}
		changed := slices.Clone(at)
		if !last {
			child, stands := mutate(at[i], path[1:], value)
			changed[i] = child
			return changed, stands
		}
		changed[i] = value
		return changed, true
	default:
		return nil, false
	}
}
