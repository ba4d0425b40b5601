package local

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"abacus/shared/deploy"
)

// resources returns a suite that has the template's tables, streams and queues, and no functions.
func resources(t *testing.T, parameters map[string]any) *Suite {
	t.Helper()
	o := Options{Root: "../..", Parameters: parameters}
	if err := o.complete(); err != nil {
		t.Fatal(err)
	}
	p, err := o.plan()
	if err != nil {
		t.Fatal(err)
	}
	p.functions, p.mappings = nil, nil
	s := newSuite(o)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := s.start(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSuite_MakesTheTemplatesTablesStreamsAndQueues(t *testing.T) {
	s := resources(t, map[string]any{"ShardCount": 3, "FunctionTimeout": 30, "MaxReceiveCount": 5})
	var table struct {
		TimeToLiveDescription struct{ AttributeName, TimeToLiveStatus string }
	}
	for _, name := range []string{"CountersTable", "DedupTable"} {
		body := map[string]any{"TableName": s.Name(name)}
		if err := s.Call(t.Context(), "DynamoDB_20120810.DescribeTimeToLive", body, &table); err != nil {
			t.Fatal(err)
		}
		if d := table.TimeToLiveDescription; d.AttributeName != "ttl" || d.TimeToLiveStatus != "ENABLED" {
			t.Errorf("%s: time to live %+v", name, d)
		}
	}
	var shards struct{ Shards []struct{ ShardId string } }
	body := map[string]any{"StreamName": s.Name("Stream")}
	if err := s.Call(t.Context(), "Kinesis_20131202.ListShards", body, &shards); err != nil || len(shards.Shards) != 3 {
		t.Errorf("%d shards, %v; want 3", len(shards.Shards), err)
	}
	var summary struct {
		StreamDescriptionSummary struct{ RetentionPeriodHours int }
	}
	err := s.Call(t.Context(), "Kinesis_20131202.DescribeStreamSummary", body, &summary)
	if hours := summary.StreamDescriptionSummary.RetentionPeriodHours; err != nil || hours != 72 {
		t.Errorf("retention %d hours, %v; want 72", hours, err)
	}
	var queue struct{ Attributes map[string]string }
	body = map[string]any{"QueueUrl": s.Name("Queue"), "AttributeNames": []string{"All"}}
	if err := s.Call(t.Context(), "AmazonSQS.GetQueueAttributes", body, &queue); err != nil {
		t.Fatal(err)
	}
	if a := queue.Attributes; a["VisibilityTimeout"] != "200" || a["MessageRetentionPeriod"] != "345600" ||
		!strings.Contains(a["RedrivePolicy"], `"maxReceiveCount":5`) ||
		!strings.Contains(a["RedrivePolicy"], "DeadLetterQueue") {
		t.Errorf("queue attributes %v", a)
	}
}

func TestSuite_GivesFunctionsTheNamesOfThisMachine(t *testing.T) {
	s := resources(t, nil)
	f := functionPlan{name: "F", env: map[string]any{
		"TABLE": deploy.Reference{Resource: "CountersTable"}, "QUEUE": deploy.Reference{Resource: "ParkQueue"},
		"ARN": deploy.Reference{Resource: "Stream", Attribute: "Arn"}, "LEVEL": "INFO", "DAYS": 35,
		"RULES": "/opt/counters.yaml",
	}}
	got, err := s.environment(f, "/home/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"TABLE": "local-CountersTable", "QUEUE": s.URL() + "/000000000000/local-ParkQueue",
		"ARN": "arn:aws:kinesis:us-east-1:000000000000:stream/local-Stream", "LEVEL": "INFO", "DAYS": "35",
		"RULES": "/home/rules.yaml", "AWS_ENDPOINT_URL": s.URL(),
	} {
		if got[name] != want {
			t.Errorf("%s=%q, want %q", name, got[name], want)
		}
	}
	f.env = map[string]any{"A": deploy.Reference{Resource: "Nowhere"}, "B": "/opt/other.yaml"}
	_, err = s.environment(f, "r")
	if err == nil || !strings.Contains(err.Error(), "Nowhere") || !strings.Contains(err.Error(), "/opt/other.yaml") {
		t.Errorf("error %v, want both faults", err)
	}
}

func TestEndpoint_RefusesWhatNoStandInAnswers(t *testing.T) {
	s := resources(t, nil)
	err := s.Call(t.Context(), "Lambda.Invoke", map[string]any{}, nil)
	var refused *Refusal
	if !errors.As(err, &refused) || refused.Type != "UnknownOperationException" {
		t.Errorf("unknown service: %v", err)
	}
	err = s.Call(t.Context(), "AmazonSQS.ReceiveMessage", map[string]any{"QueueUrl": s.URL() + "/000000000000/none"}, nil)
	if !errors.As(err, &refused) || !strings.Contains(refused.Type, "QueueDoesNotExist") {
		t.Errorf("unknown queue: %v", err)
	}
	response, err := http.Get(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusBadRequest {
		t.Errorf("a browser gets %d, want 400", response.StatusCode)
	}
}

func TestOptions_MistakesAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		options Options
		want    string
	}{
		"rules":     {Options{Root: "../..", Rules: "absent.yaml"}, "absent.yaml"},
		"parameter": {Options{Root: "../..", Parameters: map[string]any{"Shards": 4}}, "no parameter Shards"},
		"not allowed": {
			Options{Root: "../..", Parameters: map[string]any{"QueueIsFifo": "true"}}, "do not allow",
		},
		"root": {Options{Root: t.TempDir(), Rules: "suite.go"}, "template.yaml"},
	} {
		if _, err := Start(t.Context(), c.options); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q in it", name, err, c.want)
		}
	}
	if _, err := FindRoot(t.TempDir()); err == nil || !strings.Contains(err.Error(), "run this inside the repository") {
		t.Errorf("outside of the repository: %v", err)
	}
	if root, err := FindRoot("sandbox"); err != nil || !exists(root+"/template.yaml") {
		t.Errorf("root of the sandbox: %s, %v", root, err)
	}
}
