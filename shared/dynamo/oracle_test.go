package dynamo

import (
	"os"
	"testing"

	"abacus/shared/merge/mergetest"
)

// unfit are implementations that the suite cannot run over.
var unfit = map[string]string{
	"dynalite": "dynalite has no TransactWriteItems, so it cannot commit",
	"moto":     "moto does not keep transactions apart: under two clients at once it answers 500 and loses adds",
}

// TestOracle_KeepsTheContract runs the suite over another implementation of DynamoDB, whose URL and name are in the
// variables that the stand-in's own comparison uses.
func TestOracle_KeepsTheContract(t *testing.T) {
	url, name := os.Getenv("ABACUS_ORACLE_DYNAMODB"), os.Getenv("ABACUS_ORACLE_DYNAMODB_NAME")
	switch {
	case url == "" && os.Getenv("ABACUS_ORACLE_REQUIRED") != "":
		t.Fatal("ABACUS_ORACLE_REQUIRED is set, but ABACUS_ORACLE_DYNAMODB names no implementation")
	case url == "":
		t.Skip("ABACUS_ORACLE_DYNAMODB names no implementation to compare with; shared/local/oracle/run starts some")
	case unfit[name] != "":
		t.Skip(unfit[name])
	}
	client := NewClient(configFor(url))
	createTables(t, client)
	mergetest.Run(t, func(t *testing.T) mergetest.Subject { return subject(t, optionsFor(client)) })
}
