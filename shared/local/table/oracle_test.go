package table_test

import (
	"os"
	"strings"
	"testing"

	"abacus/shared/local/table"

	"go.yaml.in/yaml/v4"
)

func TestCases(t *testing.T) {
	_, client := start(t, table.Config{})
	runCases(t, implementation{client: client, wording: func(string) bool { return true }})
}

// TestOracle runs the same cases against another implementation of DynamoDB. ABACUS_ORACLE_DYNAMODB is its URL,
// ABACUS_ORACLE_DYNAMODB_NAME its name in testdata/lacks.yaml; with ABACUS_ORACLE_REQUIRED set it must be there.
func TestOracle(t *testing.T) {
	url, name := os.Getenv("ABACUS_ORACLE_DYNAMODB"), os.Getenv("ABACUS_ORACLE_DYNAMODB_NAME")
	if url == "" {
		if os.Getenv("ABACUS_ORACLE_REQUIRED") != "" {
			t.Fatal("ABACUS_ORACLE_REQUIRED is set, but ABACUS_ORACLE_DYNAMODB names no implementation")
		}
		t.Skip("ABACUS_ORACLE_DYNAMODB names no implementation to compare with; shared/local/oracle/run starts some")
	}
	text, err := os.ReadFile("testdata/lacks.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var lacks map[string]map[string]string
	if err := yaml.Load(text, &lacks); err != nil {
		t.Fatal(err)
	}
	if lacks[name] == nil {
		t.Fatalf("testdata/lacks.yaml does not know the implementation %q", name)
	}
	runCases(t, implementation{client: clientFor(url), lacks: lacks[name], wording: func(message string) bool {
		return name == "dynalite" && !strings.Contains(message, "Syntax error")
	}})
}
