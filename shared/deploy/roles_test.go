package deploy

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The AWS actions that each function is allowed, and on what; nothing else. "source" is the stream or queue that it
// counts. Reasons: a transaction needs the action of each write in it, a batch of PartiQL inserts an action of its own
// (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis-iam.html and ql-iam.html); the
// reading actions are those that Lambda's poller uses with the function's role.
var (
	counting = []string{
		"dynamodb:UpdateItem CountersTable.Arn",
		"dynamodb:BatchGetItem DedupTable.Arn",
		"dynamodb:DeleteItem DedupTable.Arn",
		"dynamodb:GetItem DedupTable.Arn",
		"dynamodb:PartiQLInsert DedupTable.Arn",
		"dynamodb:PutItem DedupTable.Arn",
	}
	allowed = map[string][]string{
		"Kinesis": slices.Concat(counting, []string{
			"kinesis:DescribeStream source",
			"kinesis:DescribeStreamSummary source",
			"kinesis:GetRecords source",
			"kinesis:GetShardIterator source",
			"kinesis:ListShards source",
			"sqs:SendMessage ParkQueue.Arn",
			"logs:CreateLogStream KinesisLogGroup.Arn",
			"logs:PutLogEvents KinesisLogGroup.Arn",
		}),
		"Sqs": slices.Concat(counting, []string{
			"sqs:DeleteMessage source",
			"sqs:GetQueueAttributes source",
			"sqs:ReceiveMessage source",
			"logs:CreateLogStream SqsLogGroup.Arn",
			"logs:PutLogEvents SqsLogGroup.Arn",
		}),
	}
)

// Wildcards that AWS leaves no other way for, each with its reason. There are none.
var wildcards = map[string]string{}

// checkRoles holds that each function has a role of its own that allows exactly what it needs.
func checkRoles(v *View, o *objections) {
	users := map[string]string{}
	for _, function := range v.OfType("AWS::Serverless::Function") {
		role := made(v.Function(function, "Role"))
		o.unless(slices.Contains(v.OfType("AWS::IAM::Role"), role), "%s has no role of its own in the template", function)
		o.unless(users[role] == "", "%s shares its role with %s", function, users[role])
		users[role] = function
		o.unless(v.Function(function, "Policies") == nil, "%s: Policies do nothing beside a Role", function)
		checkTrust(v, o, role)

		want := slices.Clone(allowed[function])
		for i := range want {
			want[i] = strings.Replace(want[i], " source", " "+target(source(v, function)), 1)
		}
		if key := sourceKey(v, function); key != "" {
			want = append(want, "kms:Decrypt "+key)
		}
		got := grants(v, function)
		slices.Sort(want)
		o.unless(slices.Equal(got, want), "%s may do %v; it needs %v", function, got, want)
		for _, grant := range got {
			_, excused := wildcards[grant]
			o.unless(!strings.Contains(grant, "*") || excused, "%s: wildcard in %q", function, grant)
		}
	}
}

func source(v *View, function string) any {
	for _, m := range mappings(v) {
		if m.function == function {
			if m.kind(v) == "Kinesis" {
				return m.at(v, "Stream")
			}
			return m.at(v, "Queue")
		}
	}
	return nil
}

func sourceKey(v *View, function string) string {
	parameter := map[string]string{"Kinesis": "StreamKeyArn", "Sqs": "QueueKeyArn"}[function]
	key, _ := v.resolve(map[string]any{"Ref": parameter}).(string)
	return key
}

func checkTrust(v *View, o *objections, role string) {
	statements, _ := v.At("Resources", role, "Properties", "AssumeRolePolicyDocument", "Statement").([]any)
	o.unless(len(statements) == 1, "%s: trusts more or less than one principal", role)
	for _, s := range statements {
		statement, _ := s.(map[string]any)
		principal, _ := statement["Principal"].(map[string]any)
		o.unless(len(principal) == 1 && principal["Service"] == "lambda.amazonaws.com", "%s: trusts %v", role, principal)
		o.unless(statement["Action"] == "sts:AssumeRole", "%s: trust allows %v", role, statement["Action"])
	}
}

// grants returns what a function's role allows, each as "action resource", sorted. What it cannot read, such as a
// policy outside the template or a Deny, shows as a grant that no list holds.
func grants(v *View, function string) []string {
	role := made(v.Function(function, "Role"))
	var documents []any
	inline, _ := v.At("Resources", role, "Properties", "Policies").([]any)
	for i := range inline {
		documents = append(documents, v.At("Resources", role, "Properties", "Policies", fmt.Sprint(i), "PolicyDocument"))
	}
	managed, _ := v.At("Resources", role, "Properties", "ManagedPolicyArns").([]any)
	var all []string
	for _, arn := range managed {
		if name := made(arn); v.Exists(name) {
			documents = append(documents, v.At("Resources", name, "Properties", "PolicyDocument"))
		} else {
			all = append(all, fmt.Sprintf("* of %v", arn))
		}
	}
	for _, document := range documents {
		statements, _ := document.(map[string]any)["Statement"].([]any)
		for _, statement := range statements {
			all = append(all, granted(statement.(map[string]any))...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func granted(statement map[string]any) []string {
	var all []string
	for _, action := range listOf(statement["Action"]) {
		for _, resource := range listOf(statement["Resource"]) {
			all = append(all, fmt.Sprintf("%v %s", action, target(resource)))
		}
	}
	if statement["Effect"] != "Allow" || len(all) == 0 {
		return []string{fmt.Sprintf("* by %v", statement)}
	}
	return all
}

func listOf(value any) []any {
	if list, isList := value.([]any); isList {
		return list
	}
	return []any{value}
}

func target(resource any) string {
	if reference, isReference := resource.(Reference); isReference {
		return reference.Resource + "." + reference.Attribute
	}
	return fmt.Sprint(resource)
}

// The IAM actions that each operation needs; what a transaction needs follows from the writes in it.
var needs = map[string]string{
	"BatchExecuteStatement": "dynamodb:PartiQLInsert", // of which package dynamo has INSERT alone
	"BatchGetItem":          "dynamodb:BatchGetItem",
	"DeleteItem":            "dynamodb:DeleteItem",
	"GetItem":               "dynamodb:GetItem",
	"PutItem":               "dynamodb:PutItem",
	"types.Put":             "dynamodb:PutItem",
	"types.Update":          "dynamodb:UpdateItem",
	"types.Delete":          "dynamodb:DeleteItem",
	"types.ConditionCheck":  "dynamodb:ConditionCheckItem",
	"TransactWriteItems":    "",
	"UpdateItem":            "dynamodb:UpdateItem",
}

func TestRoles_AllowTheOperationsThatTheStoreCalls(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(top, "shared/dynamo/*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("package dynamo is not where it was: %v", err)
	}
	called := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || filepath.Base(file) == "reader.go" { // no function reads counts
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		operations := all(`client\.([A-Z]\w+)`, string(source))
		writes := all(`&(types\.(?:Put|Update|Delete|ConditionCheck))\{`, string(source))
		for _, operation := range slices.Concat(operations, writes) {
			action, known := needs[operation]
			if !known && operation != "WithTransportOptions" {
				t.Errorf("%s calls %s; say here which action that needs, and allow it in the template", file, operation)
			}
			if action != "" {
				called[action] = true
			}
		}
	}
	granted := map[string]bool{}
	for _, grant := range counting {
		action, _, _ := strings.Cut(grant, " ")
		granted[action] = true
	}
	if !maps.Equal(called, granted) {
		t.Errorf("the store needs %v; the roles allow %v", called, granted)
	}
}
