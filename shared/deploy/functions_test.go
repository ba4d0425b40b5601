package deploy

import (
	"reflect"
	"slices"
)

// checkFunctions holds how the functions are built, run and logged.
func checkFunctions(v *View, o *objections) {
	functions := v.OfType("AWS::Serverless::Function")
	o.unless(slices.Equal(functions, []string{"Kinesis", "Sqs"}), "functions are %v", functions)
	groups := map[any]string{}
	for _, function := range functions {
		o.unless(v.Function(function, "Runtime") == "provided.al2023", "%s: runtime", function)
		o.unless(reflect.DeepEqual(v.Function(function, "Architectures"), []any{"arm64"}), "%s: architecture", function)
		o.unless(v.Function(function, "Handler") == "bootstrap", "%s: handler", function)
		o.unless(v.Function(function, "CodeUri") == ".", "%s: is not built where go.mod is", function)
		o.unless(v.At("Resources", function, "Metadata", "BuildMethod") == "makefile", "%s: build method", function)
		logging, _ := v.Function(function, "LoggingConfig").(map[string]any)
		group := made(logging["LogGroup"])
		o.unless(logging["LogFormat"] == "JSON", "%s: log format", function)
		o.unless(slices.Contains(v.OfType("AWS::Logs::LogGroup"), group), "%s: has no log group in the template", function)
		o.unless(groups[group] == "", "%s: shares its log group with %s", function, groups[group])
		o.unless(number(v.At("Resources", group, "Properties", "RetentionInDays")) > 0, "%s: keeps logs for ever", group)
		groups[group] = function
	}
}

// checkRuleFile holds that the rules travel in a layer of their own and that the functions look where it is laid.
func checkRuleFile(v *View, o *objections) {
	layers := v.OfType("AWS::Serverless::LayerVersion")
	o.unless(slices.Equal(layers, []string{"RulesLayer"}), "layers are %v", layers)
	o.unless(v.At("Resources", "RulesLayer", "Metadata", "BuildMethod") == "makefile", "the layer's build method")
	o.unless(v.At("Resources", "RulesLayer", "Properties", "ContentUri") == ".", "the layer is built elsewhere")
	for _, function := range v.OfType("AWS::Serverless::Function") {
		carried := reflect.DeepEqual(v.Function(function, "Layers"), []any{Reference{Resource: "RulesLayer"}})
		o.unless(carried, "%s: carries no rules", function)
		o.unless(environment(v, function)["ABACUS_RULES"] == "/opt/counters.yaml", "%s: looks for rules elsewhere", function)
	}
}

func environment(v *View, function string) map[string]any {
	section, _ := v.Function(function, "Environment").(map[string]any)
	variables, _ := section["Variables"].(map[string]any)
	return variables
}

// checkEnvironment holds what each function is told.
func checkEnvironment(v *View, o *objections) {
	for _, function := range v.OfType("AWS::Serverless::Function") {
		got := environment(v, function)
		want := map[string]any{
			"ABACUS_COUNTERS_TABLE": Reference{Resource: "CountersTable"},
			"ABACUS_DEDUP_TABLE":    Reference{Resource: "DedupTable"},
		}
		if function == "Kinesis" { // a queue has a dead-letter queue of its own
			want["ABACUS_PARK_QUEUE_URL"] = Reference{Resource: "ParkQueue"}
			want["ABACUS_GUARD"] = v.ref("KinesisGuard")
		}
		for name, value := range want {
			o.unless(reflect.DeepEqual(got[name], value), "%s: %s is %v, not %v", function, name, got[name], value)
		}
		for _, name := range []string{"ABACUS_RULES", "ABACUS_DEDUP_HORIZON", "ABACUS_LOG_LEVEL"} {
			text, _ := got[name].(string)
			o.unless(text != "", "%s: %s is not set", function, name)
		}
		o.unless(len(got) == len(want)+3, "%s: is told %v", function, got)
	}
}

// What the template may hold. Nothing of it answers to the outside.
var private = []string{
	"AWS::DynamoDB::Table", "AWS::IAM::ManagedPolicy", "AWS::IAM::Role", "AWS::Kinesis::Stream", "AWS::Logs::LogGroup",
	"AWS::SQS::Queue", "AWS::Serverless::Function", "AWS::Serverless::LayerVersion",
}

// checkPrivate holds that nothing can be reached but through IAM.
func checkPrivate(v *View, o *objections) {
	for _, name := range v.Keys("Resources") {
		kind := v.At("Resources", name, "Type")
		o.unless(slices.Contains(private, kind.(string)), "%s: a %v is not on the list of private kinds", name, kind)
	}
	for _, function := range v.OfType("AWS::Serverless::Function") {
		o.unless(v.Function(function, "FunctionUrlConfig") == nil, "%s: has a public address", function)
	}
	for _, m := range mappings(v) {
		o.unless(m.kind(v) == "Kinesis" || m.kind(v) == "SQS", "%s: is invoked by %v", m.function, m.kind(v))
	}
}
