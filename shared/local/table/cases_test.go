package table_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"
)

// caseFile is one file of testdata/cases: sequences of calls and what DynamoDB answers to them.
type caseFile struct {
	Cases []testCase
}

type testCase struct {
	Name   string
	Source string            // where AWS says so, for what other implementations do differently
	Tables map[string]string // name, written $name in calls, to "hash S" or "hash S, sort N", or to "" for a table that a
	// step creates; absent: T has "pk S, sk S"
	Steps []step
}

// step is one call. In its input and its answer {repeat: n} stands for a text of n letters, and {each: n, of: x} for a
// list of n copies of x with %d replaced by 0, 1, ...
type step struct {
	Want      map[string]any // members of the answer or of the error, each in full; null: absent
	Error     string         // code
	Message   string         // in full; not compared with an implementation that words its own
	Unordered bool           // the lists of the answer are in no order
	Times     int            // repeat the call; absent: once
	Call      map[string]any `yaml:",inline"` // operation to its input, where TableName may be left out: $T
	short     `yaml:",inline"`
}

// implementation is what the cases run against.
type implementation struct {
	client  *dynamodb.Client
	wording func(message string) bool // it words this message as AWS does
	lacks   map[string]string         // file/case, or a whole file, to the reason why it does not pass
}

// runCases runs every case, those that the implementation lacks by name included: one that passes after all must leave
// the list.
func runCases(t *testing.T, on implementation) {
	files, err := filepath.Glob("testdata/cases/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no case files: %v", err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var file caseFile
		if err := yaml.Load(text, &file, yaml.WithKnownFields()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		name = strings.TrimSuffix(filepath.Base(name), ".yaml")
		for _, c := range file.Cases {
			t.Run(name+"/"+c.Name, func(t *testing.T) {
				t.Parallel()
				if why := on.lacks[name]; why != "" {
					t.Skip(why)
				}
				runOne(t, on, c, on.lacks[name+"/"+c.Name])
			})
		}
	}
}

func runOne(t *testing.T, on implementation, c testCase, lacks string) {
	failures := playCase(t.Context(), on, c)
	switch {
	case lacks != "" && len(failures) > 0:
		t.Skip(lacks)
	case lacks != "":
		t.Errorf("it passes, though it is said to lack this (%s): take the word back", lacks)
	}
	for _, f := range failures {
		t.Error(f)
	}
}

// playCase returns what differs from the case.
func playCase(ctx context.Context, on implementation, c testCase) []string {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if c.Tables == nil {
		c.Tables = map[string]string{"T": "pk S, sk S"}
	}
	var names []string
	unique := fmt.Sprintf("-%x", time.Now().UnixNano())
	for name, schema := range c.Tables {
		names = append(names, "$"+name, name+"-case"+unique)
		if schema == "" {
			continue
		}
		if err := createFrom(ctx, on.client, name+"-case"+unique, schema); err != nil {
			return []string{"create " + name + ": " + err.Error()}
		}
	}
	rename := strings.NewReplacer(names...)
	var failures []string
	for n, s := range c.Steps {
		for range max(1, s.Times) {
			if problem := playStep(ctx, on, s, rename); problem != "" {
				failures = append(failures, fmt.Sprintf("step %d: %s", n+1, problem))
			}
		}
	}
	return failures
}

// createFrom makes a table from a schema like "pk S, sk N" and waits until it can be used.
func createFrom(ctx context.Context, c *dynamodb.Client, name, schema string) error {
	in := &dynamodb.CreateTableInput{TableName: &name, BillingMode: types.BillingModePayPerRequest}
	for n, attribute := range strings.Split(schema, ", ") {
		attributeName, kind, _ := strings.Cut(attribute, " ")
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{
			AttributeName: &attributeName, AttributeType: types.ScalarAttributeType(kind)})
		in.KeySchema = append(in.KeySchema, types.KeySchemaElement{
			AttributeName: &attributeName, KeyType: []types.KeyType{types.KeyTypeHash, types.KeyTypeRange}[n]})
	}
	if _, err := c.CreateTable(ctx, in); err != nil {
		return err
	}
	return awaitTable(ctx, c, name)
}

func awaitTable(ctx context.Context, c *dynamodb.Client, name string) error {
	quick := func(o *dynamodb.TableExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = time.Millisecond, 20*time.Millisecond
	}
	w := dynamodb.NewTableExistsWaiter(c, quick)
	return w.Wait(ctx, &dynamodb.DescribeTableInput{TableName: &name}, 10*time.Second)
}

// playStep makes one call and returns what is wrong with the answer.
func playStep(ctx context.Context, on implementation, s step, rename *strings.Replacer) string {
	s = s.long()
	if len(s.Call) != 1 {
		return fmt.Sprintf("%d operations in one step", len(s.Call))
	}
	for operation, input := range s.Call {
		answer, err := call(ctx, on.client, operation, input, rename)
		if s.Error == "" && err != nil {
			return fmt.Sprintf("%s: unexpected error: %v", operation, err)
		}
		if s.Error != "" {
			var modelled smithy.APIError
			if !errors.As(err, &modelled) || modelled.ErrorCode() != s.Error {
				return fmt.Sprintf("%s: want the error %s, got %v %s", operation, s.Error, err, toJSON(answer))
			}
			if s.Message != "" && on.wording(s.Message) && modelled.ErrorMessage() != s.Message {
				return fmt.Sprintf("%s:\n got the message %q\nwant            %q", operation, modelled.ErrorMessage(), s.Message)
			}
			answer = modelled
		}
		got, _ := plain(jsontext.Value(toJSON(answer))).(map[string]any)
		if s.Unordered {
			sortLists(got)
			sortLists(s.Want)
		}
		for member, value := range s.Want {
			want := plain(jsontext.Value(rename.Replace(toJSON(expand(value)))))
			if diff := cmp.Diff(want, got[member]); diff != "" {
				return fmt.Sprintf("%s: %s differs (-want +got):\n%s", operation, member, diff)
			}
		}
	}
	return ""
}

// call invokes one operation of the SDK with an input written as JSON would be.
func call(ctx context.Context, c *dynamodb.Client, operation string, input any, rename *strings.Replacer) (any, error) {
	method := reflect.ValueOf(c).MethodByName(operation)
	if !method.IsValid() {
		return nil, fmt.Errorf("%s is not an operation of the SDK", operation)
	}
	in := reflect.New(method.Type().In(1).Elem())
	text := rename.Replace(toJSON(expand(input)))
	err := json.Unmarshal([]byte(text), in.Interface(), json.RejectUnknownMembers(true),
		json.WithUnmarshalers(json.UnmarshalFromFunc(readValue)))
	if err != nil {
		return nil, fmt.Errorf("the case's input does not fit the SDK: %w", err)
	}
	if name := in.Elem().FieldByName("TableName"); name.IsValid() && name.IsNil() {
		name.Set(reflect.ValueOf(aws.String(rename.Replace("$T"))))
	}
	out := method.Call([]reflect.Value{reflect.ValueOf(ctx), in})
	if err, failed := out[1].Interface().(error); failed {
		return nil, err
	}
	if made, ok := out[0].Interface().(*dynamodb.CreateTableOutput); ok {
		return made, awaitTable(ctx, c, *made.TableDescription.TableName)
	}
	return out[0].Interface(), nil
}

// expand replaces the shorthands of a case.
func expand(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if n, ok := v["repeat"].(int); ok && len(v) == 1 {
			return strings.Repeat("a", n)
		}
		if n, ok := v["each"].(int); ok && len(v) == 2 {
			var list []any
			for i := range n {
				one := strings.ReplaceAll(toJSON(expand(v["of"])), "%d", fmt.Sprint(i))
				list = append(list, plain(jsontext.Value(one)))
			}
			return list
		}
		all := make(map[string]any)
		for name, member := range v {
			all[name] = expand(member)
		}
		return all
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = expand(v[i])
		}
		return list
	}
	return v
}

// toJSON writes answers of the SDK as the wire has them.
func toJSON(v any) string {
	text, err := json.Marshal(v, json.Deterministic(true), json.FormatNilMapAsNull(true), json.FormatNilSliceAsNull(true),
		json.WithMarshalers(json.JoinMarshalers(
			json.MarshalToFunc(writeValue),
			json.MarshalToFunc(func(enc *jsontext.Encoder, _ middleware.Metadata) error {
				return enc.WriteToken(jsontext.Null)
			}),
		)))
	if err != nil {
		return fmt.Sprintf("%q", err)
	}
	return string(text)
}

// plain reads JSON without nulls, and with sets in order.
func plain(text jsontext.Value) any {
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return err.Error()
	}
	return tidy(v)
}

func tidy(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if member = tidy(member); member == nil {
				delete(v, name)
			} else if v[name] = member; name == "SS" || name == "NS" || name == "BS" {
				sortList(member)
			}
		}
	case []any:
		for i := range v {
			v[i] = tidy(v[i])
		}
	}
	return v
}

func sortList(v any) {
	if list, ok := v.([]any); ok {
		slices.SortFunc(list, func(a, b any) int { return strings.Compare(toJSON(a), toJSON(b)) })
	}
}

// sortLists sorts the lists of an answer, at its top or below the names of tables.
func sortLists(members map[string]any) {
	for _, v := range members {
		sortList(v)
		if tables, ok := v.(map[string]any); ok {
			for _, list := range tables {
				sortList(list)
			}
		}
	}
}
