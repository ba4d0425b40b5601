package shared

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "abacus/"

const (
	dynamoSDK  = "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	kinesisSDK = "github.com/aws/aws-sdk-go-v2/service/kinesis"
	sqsSDK     = "github.com/aws/aws-sdk-go-v2/service/sqs"
	awsSDK     = "github.com/aws/aws-sdk-go-v2"
	awsConfig  = "github.com/aws/aws-sdk-go-v2/config"
	awsKeys    = "github.com/aws/aws-sdk-go-v2/credentials"
	smithy     = "github.com/aws/smithy-go"
	lambda     = "github.com/aws/aws-lambda-go"
	jsonText   = "github.com/go-json-experiment/json"
	protowire  = "google.golang.org/protobuf/encoding/protowire"
)

// arrow says what a package may import besides the standard library: packages of this module by their folder, where
// "x/..." stands for x and all under it, and others by a path that stands for all under it.
type arrow struct {
	from string
	to   []string
}

// The map of doc.go as data. The first row that fits a package holds for it; a package without a row may not be.
var arrows = []arrow{
	{"shared", nil},
	{"shared/tally", nil},
	{"shared/tally/rules", []string{"shared/tally", "github.com/expr-lang/expr", "go.yaml.in/yaml/v4", jsonText}},
	{"shared/envelope", []string{"shared/tally", "github.com/klauspost/compress", jsonText, protowire}},
	{"shared/merge", []string{"shared/tally"}},
	{"shared/merge/mergetest", []string{"shared/merge", "shared/tally", "pgregory.net/rapid", "github.com/google/go-cmp"}},
	{"shared/dynamo", []string{"shared/merge", "shared/tally", dynamoSDK, awsSDK + "/aws", smithy}},
	{"shared/ingest", []string{"shared/envelope", "shared/merge", "shared/tally", "shared/tally/rules"}},
	{"shared/replay", []string{
		"shared/envelope", "shared/ingest", "shared/merge", kinesisSDK, awsSDK + "/aws", smithy, jsonText,
	}},
	{"shared/park", []string{sqsSDK, awsSDK + "/aws"}},
	{"shared/env", []string{"shared/tally", awsSDK + "/aws", awsConfig}},
	{"shared/telemetry", []string{lambda}},
	{"shared/wal", []string{"golang.org/x/sys"}},
	{"shared/wal/waltest", []string{"shared/wal"}},
	{"shared/deploy", []string{"go.yaml.in/yaml/v4"}},
	{"shared/local/...", []string{
		"shared/...", dynamoSDK, kinesisSDK, sqsSDK, awsSDK + "/aws", awsConfig, awsKeys, smithy,
		"github.com/cockroachdb/apd/v3", jsonText, lambda, "golang.org/x/sync", "golang.org/x/sys",
	}},
	{"shared/cmd/...", []string{"shared/...", awsSDK + "/aws", awsConfig, "github.com/spf13/cobra"}},
	{"functions/...", []string{
		"shared/dynamo", "shared/env", "shared/envelope", "shared/ingest", "shared/merge", "shared/park", "shared/tally/rules",
		"shared/telemetry", lambda,
	}},
}

func fits(pattern, folder string) bool {
	root, whole := strings.CutSuffix(pattern, "/...")
	return folder == root || whole && strings.HasPrefix(folder, root+"/")
}

func (a arrow) allows(path string) bool {
	folder, ours := strings.CutPrefix(path, module)
	first, _, _ := strings.Cut(path, "/")
	if standard := !ours && !strings.Contains(first, "."); standard {
		return true
	}
	return slices.ContainsFunc(a.to, func(to string) bool {
		return ours && fits(to, folder) || !ours && fits(to+"/...", path)
	})
}

// listed is a package as `go list -json` shows it; tests are not among its imports.
type listed struct {
	ImportPath string
	Imports    []string
}

// wrongWay returns an objection for every import that no arrow allows.
func wrongWay(packages []listed) []string {
	var found []string
	for _, p := range packages {
		folder := strings.TrimPrefix(p.ImportPath, module)
		row := slices.IndexFunc(arrows, func(a arrow) bool { return fits(a.from, folder) })
		if row < 0 {
			found = append(found, folder+" has no row in the table of arrows; add one, and say in doc.go what it is")
			continue
		}
		for _, path := range p.Imports {
			if !arrows[row].allows(path) {
				found = append(found, fmt.Sprintf("%s imports %s", folder, strings.TrimPrefix(path, module)))
			}
		}
	}
	return found
}

func TestImports_PointOneWay(t *testing.T) {
	command := exec.CommandContext(t.Context(), "go", "list", "-e", "-json=ImportPath,Imports", "./...")
	command.Dir, command.Stderr = "..", os.Stderr
	text, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	var packages []listed
	for decoder := json.NewDecoder(strings.NewReader(string(text))); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
	if len(packages) < 5 {
		t.Fatalf("go list shows %d packages; are we in the module?", len(packages))
	}
	for _, objection := range wrongWay(packages) {
		t.Error(objection)
	}
}

func TestImports_EachWrongWayIsObjectedTo(t *testing.T) {
	for from, imports := range map[string][]string{
		"shared/tally":             {"abacus/shared/merge", "abacus/shared/tally/rules", "golang.org/x/sys/unix", jsonText},
		"shared/tally/rules":       {"abacus/shared/merge", "abacus/shared/envelope", dynamoSDK},
		"shared/merge":             {"abacus/shared/dynamo", "abacus/shared/merge/mergetest", dynamoSDK},
		"shared/envelope":          {"abacus/shared/merge", "abacus/shared/tally/rules", lambda},
		"shared/dynamo":            {"abacus/shared/ingest", "abacus/shared/local/table", sqsSDK},
		"shared/ingest":            {"abacus/shared/dynamo", dynamoSDK, "abacus/shared/merge/mergetest", lambda},
		"shared/wal":               {"abacus/shared/tally", "abacus/shared/merge"},
		"shared/cmd/abacus":        {dynamoSDK, "abacus/functions/kinesis"},
		"shared/local/table":       {"abacus/functions/sqs"},
		"functions/kinesis":        {"abacus/shared/local/table", "abacus/shared/local", module + "x", dynamoSDK},
		"functions/sqs":            {"abacus/shared/local/sandbox", dynamoSDK, "abacus/functions/kinesis"},
		"shared/utils":             {"fmt"},
		"shared/merge/mergetest/x": {"fmt"},
		"shared/park":              {"abacus/shared/envelope", dynamoSDK},
		"functions/other":          {"abacus/shared/local/demo", sqsSDK},
	} {
		for _, path := range imports {
			if len(wrongWay([]listed{{module + from, []string{path}}})) != 1 {
				t.Errorf("%s may import %s, and no test objects", from, path)
			}
		}
	}
	right := []listed{
		{module + "shared/tally", []string{"math/bits", "errors"}},
		{module + "shared/tally/rules", []string{module + "shared/tally", "github.com/expr-lang/expr/vm"}},
		{module + "shared/dynamo", []string{module + "shared/merge", dynamoSDK + "/types", "unsafe"}},
		{module + "shared/local/sandbox", []string{module + "shared/local/wire", dynamoSDK}},
	}
	for _, objection := range wrongWay(right) {
		t.Errorf("objects to a right import: %s", objection)
	}
}

func TestTopLevel_HoldsOnlyWhatBelongsThere(t *testing.T) {
	belongs := []string{
		"LICENSE", "Makefile", "README.md", "events", "functions", "go.mod", "go.sum",
		"samconfig.toml", "shared", "template.yaml",
	}
	entries, err := os.ReadDir("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if name := entry.Name(); !strings.HasPrefix(name, ".") && !slices.Contains(belongs, name) {
			t.Errorf("%s stands at the top level, which holds %v and dot-files alone", name, belongs)
		}
	}
	here, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range here {
		if name := entry.Name(); !entry.IsDir() && name != "doc.go" && !strings.HasSuffix(name, "_test.go") {
			t.Errorf("shared/%s: folder shared itself holds the map and tests of the whole; give the rest a package", name)
		}
	}
}
