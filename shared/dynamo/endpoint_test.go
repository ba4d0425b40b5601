package dynamo

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"abacus/shared/local/table"
	"abacus/shared/merge/mergetest"
	"abacus/shared/tally"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

const (
	countersName = "abacus-counters"
	dedupName    = "abacus-dedup"
)

// configFor returns an SDK configuration that knows one endpoint.
func configFor(url string) aws.Config {
	return aws.Config{
		Region: "us-east-1", BaseEndpoint: aws.String(url),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "key", SecretAccessKey: "secret"}, nil
		}),
	}
}

// serve serves handler on this machine and returns its address.
func serve(t testing.TB, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// createTables makes both tables at an endpoint.
func createTables(t testing.TB, client *dynamodb.Client) {
	t.Helper()
	for name, spec := range map[string]TableSpec{countersName: CountersTable, dedupName: DedupTable} {
		if _, err := client.CreateTable(t.Context(), spec.CreateTable(name)); err != nil {
			t.Fatalf("create %s: %v", name, err)
		}
		if _, err := client.UpdateTimeToLive(t.Context(), spec.EnableTTL(name)); err != nil {
			t.Fatalf("enable TTL of %s: %v", name, err)
		}
	}
}

// standIn returns a stand-in with both tables, and a client of it.
func standIn(t testing.TB, config table.Config) (*table.Service, *dynamodb.Client) {
	t.Helper()
	service := table.New(config)
	client := NewClient(configFor(serve(t, service)))
	createTables(t, client)
	return service, client
}

func optionsFor(client *dynamodb.Client) Options {
	return Options{Client: client, Counters: countersName, Dedup: dedupName, CallTimeout: 10 * time.Second}
}

func storeOn(t testing.TB, o Options) *Store {
	t.Helper()
	s, err := NewStore(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func readerOn(t testing.TB, o Options) *Reader {
	t.Helper()
	r, err := NewReader(o)
	if err != nil {
		t.Fatal(err)
	}
	r.Consistent = true
	return r
}

// subject puts a Store and a Reader on one endpoint under test.
func subject(t testing.TB, o Options) mergetest.Subject {
	t.Helper()
	r := readerOn(t, o)
	return mergetest.Subject{Store: storeOn(t, o), Now: time.Now, Total: func(cell tally.Cell) tally.Sum {
		n, err := r.Get(t.Context(), cell)
		if err != nil {
			t.Errorf("read: %v", err)
		}
		return n
	}}
}
