package local

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"abacus/shared/deploy"
)

const templatePath = "../../template.yaml"

func viewOf(t *testing.T, text string, parameters map[string]any) *deploy.View {
	t.Helper()
	template, err := deploy.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return template.View(func(name string) any { return parameters[name] })
}

func TestPlan_OfTheTemplateNamesEveryResource(t *testing.T) {
	template, err := deploy.Open(templatePath)
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPlan(template.View(func(name string) any { return map[string]any{"ShardCount": 7}[name] }))
	if err != nil {
		t.Fatal(err)
	}
	var tables []string
	for _, made := range p.tables {
		tables = append(tables, made.name+"/"+made.ttl)
	}
	if want := []string{"CountersTable/ttl", "DedupTable/ttl"}; !slices.Equal(tables, want) {
		t.Errorf("tables %q, want %q", tables, want)
	}
	if want := []streamPlan{{name: "Stream", shards: 7, retentionHours: 72}}; !slices.Equal(p.streams, want) {
		t.Errorf("streams %+v, want %+v", p.streams, want)
	}
	last := p.queues[len(p.queues)-1]
	if last.name != "Queue" || last.deadLetter != "DeadLetterQueue" || last.maxReceive != 10 ||
		last.attributes["VisibilityTimeout"] != 380 {
		t.Errorf("last queue %+v, want Queue after its dead-letter queue", last)
	}
	given := func(parameter string) int {
		n, _ := template.View(nil).At("Parameters", parameter, "Default").(int)
		return n
	}
	if given("KinesisBatchSize") < 2 || given("SqsBatchSize") < 2 {
		t.Fatal("the template's defaults are not where this test looks for them")
	}
	want := []mappingPlan{
		{
			name: "Kinesis.Records", function: "Kinesis", stream: "Stream", batchSize: given("KinesisBatchSize"),
			window: time.Duration(given("KinesisBatchWindow")) * time.Second, reports: true,
			start: "TRIM_HORIZON", bisect: true, retries: given("KinesisRetryAttempts"),
			maxAge: time.Duration(given("KinesisRecordAge")) * time.Second, parallel: 1, onFailureQueue: "ParkQueue",
		},
		{
			name: "Sqs.Messages", function: "Sqs", queue: "Queue", batchSize: given("SqsBatchSize"),
			window: time.Duration(given("SqsBatchWindow")) * time.Second, reports: true,
			concurrency: given("SqsMaxConcurrency"),
		},
	}
	if !slices.Equal(p.mappings, want) {
		t.Errorf("mappings\n%+v, want\n%+v", p.mappings, want)
	}
	counters, park := deploy.Reference{Resource: "CountersTable"}, deploy.Reference{Resource: "ParkQueue"}
	for _, f := range p.functions {
		if f.timeout != time.Minute || f.memoryMB != 512 || f.env["ABACUS_COUNTERS_TABLE"] != counters {
			t.Errorf("function %+v", f)
		}
	}
	if f := p.functions[0]; f.folder() != "functions/kinesis" || f.env["ABACUS_PARK_QUEUE_URL"] != park {
		t.Errorf("first function %s with %v", f.folder(), slices.Sorted(maps.Keys(f.env)))
	}
}

const small = `
Parameters:
  Own: {Type: String, Default: "no"}
Conditions:
  Mine: !Equals [!Ref Own, "yes"]
Globals:
  Function: {Runtime: provided.al2023, Timeout: 30, Environment: {Variables: {LEVEL: INFO, TABLE: !Ref T}}}
Resources:
  T:
    Type: AWS::DynamoDB::Table
    Properties: {KeySchema: [{AttributeName: pk, KeyType: HASH}], BillingMode: PAY_PER_REQUEST}
  S:
    Type: AWS::Kinesis::Stream
    Condition: Mine
    Properties: {ShardCount: 2}
  Q:
    Type: AWS::SQS::Queue
    Properties: {RedrivePolicy: {deadLetterTargetArn: !GetAtt Z.Arn, maxReceiveCount: 5}}
  Z: {Type: AWS::SQS::Queue}
  F:
    Type: AWS::Serverless::Function
    Properties:
      Environment: {Variables: {LEVEL: DEBUG}}
      Events:
        E: {Type: SQS, Properties: {Queue: !GetAtt Q.Arn}}
`

func TestPlan_TakesConditionsGlobalsAndDefaults(t *testing.T) {
	p, err := newPlan(viewOf(t, small, nil))
	if err != nil {
		t.Fatal(err)
	}
	if len(p.streams) != 0 {
		t.Errorf("streams %+v although the condition does not hold", p.streams)
	}
	if p.queues[0].name != "Z" || p.queues[1].deadLetter != "Z" {
		t.Errorf("queues %+v, want the dead-letter queue first", p.queues)
	}
	wantEnv := map[string]any{"LEVEL": "DEBUG", "TABLE": deploy.Reference{Resource: "T"}}
	if f := p.functions[0]; f.timeout != 30*time.Second || f.memoryMB != 128 || !reflect.DeepEqual(f.env, wantEnv) {
		t.Errorf("function %+v", f)
	}
	if want := (mappingPlan{name: "F.E", function: "F", queue: "Q", batchSize: 10}); p.mappings[0] != want {
		t.Errorf("mapping %+v, want Lambda's defaults %+v", p.mappings[0], want)
	}
	if p, err = newPlan(viewOf(t, small, map[string]any{"Own": "yes"})); err != nil || len(p.streams) != 1 {
		t.Errorf("under the condition: streams %+v, %v", p.streams, err)
	}
}

func TestPlan_WhatItDoesNotKnowIsAnError(t *testing.T) {
	for _, c := range []struct{ change, to, fault string }{
		{"ShardCount: 2", "ShardCount: two", "S: ShardCount is not a whole number"},
		{"AWS::SQS::Queue}", "AWS::SNS::Topic}", "Z: resources of type AWS::SNS::Topic"},
		{"{ShardCount: 2}", "{ShardCount: 2, Name: x}", "S: property Name"},
		{"maxReceiveCount: 5", "maxReceiveCount: 5, extra: 1", "Q.RedrivePolicy: property extra"},
		{"BillingMode: PAY_PER_REQUEST", "Tags: []", "T: property Tags"},
		{"Type: SQS, ", "Type: S3, ", `F.Events.E: events of type "S3"`},
		{"Queue: !GetAtt Q.Arn", "Queue: arn:aws:sqs:x:y:z", "outside of the template"},
		{"Queue: !GetAtt Q.Arn", "Queue: !Ref Q", "F.Events.E.Properties: Queue is not the ARN"},
		{"Queue: !GetAtt Q.Arn", "Queue: !GetAtt Q.Arn, FilterCriteria: {}", "property FilterCriteria"},
		{"Queue: !GetAtt Q.Arn", "Queue: !GetAtt Q.Arn, ScalingConfig: {Minimum: 3}", "ScalingConfig: property Minimum"},
		{"Queue: !GetAtt Q.Arn", "Queue: !GetAtt Q.Arn, FunctionResponseTypes: yes", "FunctionResponseTypes is not a list"},
		{"Queue: !GetAtt Q.Arn", "Queue: !GetAtt Q.Arn, FunctionResponseTypes: [S]", "FunctionResponseTypes has S"},
		{"Runtime: provided.al2023", "Runtime: nodejs22.x", "runtime is not provided.al2023"},
		{"Environment: {Variables: {LEVEL: DEBUG}}", "SnapStart: {}", "F: property SnapStart"},
		{"!GetAtt Z.Arn", "!ImportValue z", "Fn::ImportValue"},
	} {
		text := strings.Replace(small, c.change, c.to, 1)
		if text == small {
			t.Fatalf("%q does not stand in the template", c.change)
		}
		_, err := newPlan(viewOf(t, text, map[string]any{"Own": "yes"}))
		if err == nil || !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%s: error %v, want %q in it", c.to, err, c.fault)
		}
	}
}
